"""Resampling in fixed point: source coordinates are rounded to 1/256 pixel, and the rest is integers.

Float resampling differs in the last bit from device to device, and a rounded pixel now and then with it. Here a
picture is the same on both once the coordinates agree to 1/256 pixel, which float64 coordinates do.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange
from torch import Tensor

from torchcaps.data.random import RandomStream

__all__ = ["affine_coordinates", "draw_affine", "resample"]

FRACTION_BITS = 8
ONE = 1 << FRACTION_BITS


def _split_coordinate(coordinate: Tensor, length: int, reach: int) -> tuple[Tensor, Tensor]:
    """First pixel that counts, in the padded picture, and 1/256ths of the way; far outside is all black border."""
    fixed = torch.floor(coordinate * ONE + 0.5).clamp(-reach * ONE, (length + reach - 1) * ONE).to(torch.int64)
    return (fixed >> FRACTION_BITS) + reach, fixed & (ONE - 1)


def _linear(part: Tensor) -> list[Tensor]:
    """Weights of the two pixels around a place, in 256ths."""
    return [ONE - part, part]


def _cubic(part: Tensor) -> list[Tensor]:
    """Weights of the four pixels around a place by cubic convolution (Keys 1981, a = −1/2), in 256ths."""
    linear, square, cube = part * (ONE * ONE), part * part * ONE, part * part * part

    def rounded(twice: Tensor) -> Tensor:
        return (twice + ONE * ONE) >> (2 * FRACTION_BITS + 1)

    before, after = rounded(2 * square - cube - linear), rounded(4 * square - 3 * cube + linear)
    far_after = rounded(cube - square)
    return [before, ONE - before - after - far_after, after, far_after]  # they sum to 1 in spite of the rounding


def resample(images: Tensor, y: Tensor, x: Tensor, sharp: bool = False) -> Tensor:
    """Read pictures at fractional places between the pixels' centres; black outside.

    Between two pixels the line that joins them is read, which makes strokes softer. ``sharp`` reads a cubic through
    four pixels instead, kept within black and white.

    Shape:
        images: uint8 or float ``[B, C, H, W]``; y, x: float ``[B, H', W']`` in pixels, 0 being the centre of the
        first row or column. Output: ``[B, C, H', W']`` in the type of the images.

    >>> image = torch.tensor([[[[0, 100]]]], dtype=torch.uint8)
    >>> resample(image, torch.zeros(1, 1, 1), torch.full((1, 1, 1), 0.25)).item()
    25
    """
    _, C, H, W = images.shape
    reach, weights = (2, _cubic) if sharp else (1, _linear)
    first_y, part_y = _split_coordinate(y, H, reach)
    first_x, part_x = _split_coordinate(x, W, reach)
    margin = (2 * reach - 1, 2 * reach)
    row_length = W + sum(margin)
    pixels = rearrange(F.pad(images, (*margin, *margin)), "B C H W -> B C (H W)")
    corner = rearrange(first_y * row_length + first_x, "B H W -> B 1 (H W)").expand(-1, C, -1)
    number = torch.int32 if images.dtype == torch.uint8 else images.dtype
    total = torch.zeros(corner.shape, dtype=number, device=images.device)
    for down, weight_y in enumerate(weights(part_y)):
        for right, weight_x in enumerate(weights(part_x)):
            weight = rearrange(weight_y * weight_x, "B H W -> B 1 (H W)").to(number)
            total += weight * pixels.gather(-1, corner + (down * row_length + right)).to(number)
    if number == torch.int32:
        rounded = (total + (ONE * ONE // 2)) >> (2 * FRACTION_BITS)
        result = (rounded.clamp(0, 255) if sharp else rounded).to(images.dtype)
    else:
        result = total / (ONE * ONE)
        result = result.clamp(0, 1) if sharp else result
    return rearrange(result, "B C (H W) -> B C H W", H=y.shape[-2])


def draw_affine(
    random: RandomStream, counter: Tensor, degrees: float, shear: float, scale: tuple[float, float]
) -> Tensor:
    """Rotation · shear · scale per axis, each uniform in its range, float64 ``[B, 2, 2]`` on (y, x) vectors.

    The shear moves a row sideways in proportion to its height.
    """
    unit = random.uniform(counter, lanes=4).double()  # [B, 4]
    angle = torch.deg2rad((2 * unit[:, 0] - 1) * degrees)
    slant = (2 * unit[:, 1] - 1) * shear
    scale_y, scale_x = (scale[0] + unit[:, 2:] * (scale[1] - scale[0])).unbind(1)
    cosine, sine = angle.cos(), angle.sin()
    # [[cos, sin], [−sin, cos]] · [[1, 0], [slant, 1]] · diag(scale_y, scale_x)
    rows = (
        torch.stack(((cosine + sine * slant) * scale_y, sine * scale_x), dim=1),
        torch.stack(((cosine * slant - sine) * scale_y, cosine * scale_x), dim=1),
    )
    return torch.stack(rows, dim=1)


def affine_coordinates(
    matrix: Tensor, source_centre: Tensor, target_centre: Tensor, size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Where each pixel of the result comes from when ``target = matrix · (source − source_centre) + target_centre``.

    Shape:
        matrix: float64 ``[B, 2, 2]``; centres: float64 ``[B, 2]`` or ``[2]`` as (y, x). Output: y and x, each
        float64 ``[B, *size]``.
    """
    # Written out element by element: a matrix product may add in another order on another device.
    (a, b), (c, d) = (row.unbind(1) for row in matrix.unbind(1))
    determinant = a * d - b * c
    offset = target_centre.expand(len(matrix), 2)
    rows = torch.arange(size[0], device=matrix.device, dtype=matrix.dtype)
    columns = torch.arange(size[1], device=matrix.device, dtype=matrix.dtype)
    down = rows[None, :, None] - offset[:, 0, None, None]  # [B, H', 1]
    right = columns[None, None, :] - offset[:, 1, None, None]  # [B, 1, W']
    origin = source_centre.expand(len(matrix), 2)

    def solve(per_row: Tensor, per_column: Tensor, start: Tensor) -> Tensor:
        slope_y, slope_x = (per_row / determinant)[:, None, None], (per_column / determinant)[:, None, None]
        return slope_y * down + slope_x * right + start[:, None, None]

    return solve(d, -b, origin[:, 0]), solve(-c, a, origin[:, 1])
