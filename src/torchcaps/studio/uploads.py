"""A picture that somebody sends: decoded in memory, within limits, into what the network takes."""

from __future__ import annotations

import io
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.data.optional import pillow_image
from torchcaps.data.readers.pictures import fit_inside, flat_picture
from torchcaps.studio.network import Network
from torchcaps.studio.refusal import RefusalError

__all__ = ["MOST_PIXELS", "centre_digit", "read_upload"]

MOST_PIXELS = 25_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
DIGIT_SIDE, DIGIT_BOX = 28, 20  # of MNIST: the ink fits 20×20, its centre of mass is the middle of 28×28
INK = 0.15  # of the largest contrast to the background; less is noise of a photograph

Invert = Literal["auto", "yes", "no"]


def read_upload(content: bytes, network: Network, invert: Invert) -> tuple[Tensor, bool]:
    """The picture as float ``[C, H, W]`` in 0…1, and whether dark and bright were swapped.

    ``auto`` swaps a grey picture with a bright border, since digits and other published sets are bright on black. For
    a network of digits the ink is cut out, scaled into 20×20 and centred by its mass, as MNIST was made; a picture
    of 28×28 is taken to be such a one already. Anything else is scaled to fit inside and its border repeated.
    """
    C, H, W = network.model.image_shape
    if C not in (1, 3):
        raise RefusalError(f"the network takes {C} channels, but a picture has 1 (grey) or 3 (colour)")
    picture = _decode(content, grey=C == 1)
    if network.digits:
        pixels = np.asarray(picture, dtype=np.uint8)[None]
        if pixels.shape[1:] not in ((DIGIT_SIDE, DIGIT_SIDE), (H, W)):
            turned = invert == "yes" or (invert == "auto" and _bright_border(pixels))
            digit = centre_digit(255 - pixels[0] if turned else pixels[0])
            return _padded(digit, H, W), turned
    else:
        pixels = fit_inside(picture, H, W)
    turned = invert == "yes" or (invert == "auto" and C == 1 and _bright_border(pixels))
    unit = torch.from_numpy((255 - pixels if turned else pixels).astype(np.float32) / 255)
    return (_padded(unit[0].numpy(), H, W) if network.digits else unit), turned


def centre_digit(grey: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Bright ink on a dark ground, of any size, to ``[28, 28]`` in 0…1 by the rule of MNIST."""
    background = float(np.median(np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]])))
    contrast = (grey.astype(np.float32) - background).clip(min=0)
    if contrast.max() < 8:  # nothing but ground
        return np.zeros((DIGIT_SIDE, DIGIT_SIDE), dtype=np.float32)
    values = contrast / contrast.max()
    rows, columns = (np.flatnonzero((values > INK).any(axis=axis)) for axis in (1, 0))
    ink = values[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    scale = DIGIT_BOX / max(ink.shape)
    height, width = (max(1, round(side * scale)) for side in ink.shape)
    image = pillow_image()
    small = image.fromarray((ink * 255).round().astype(np.uint8)).resize((width, height), image.Resampling.BOX)
    digit = np.asarray(small, dtype=np.float32) / 255
    digit = digit / max(float(digit.max()), 1e-6)
    mass = max(float(digit.sum()), 1e-6)
    middle_y = float((digit.sum(axis=1) * np.arange(height)).sum()) / mass
    middle_x = float((digit.sum(axis=0) * np.arange(width)).sum()) / mass
    top, left = (round((DIGIT_SIDE - 1) / 2 - middle) for middle in (middle_y, middle_x))
    top, left = (min(max(0, start), DIGIT_SIDE - side) for start, side in ((top, height), (left, width)))
    canvas = np.zeros((DIGIT_SIDE, DIGIT_SIDE), dtype=np.float32)
    canvas[top : top + height, left : left + width] = digit
    return canvas


def _decode(content: bytes, grey: bool) -> Any:
    if not content:
        raise RefusalError("the body is empty; send the bytes of a picture")
    image = pillow_image()
    too_large = f"the picture has more than {MOST_PIXELS:,} pixels; scale it down"
    try:
        with image.open(io.BytesIO(content), formats=FORMATS) as picture:
            width, height = picture.size  # known from the header, before a pixel is unpacked
            if width * height > MOST_PIXELS:
                raise RefusalError(
                    f"the picture has {width}×{height} pixels, the limit is {MOST_PIXELS:,}; scale it down"
                )
            return flat_picture(picture, grey)
    except RefusalError:
        raise
    except (image.DecompressionBombWarning, image.DecompressionBombError) as error:
        raise RefusalError(too_large) from error
    except Exception as error:  # decoders raise all kinds of exceptions on damaged bytes
        raise RefusalError(
            f"this is not a whole picture of the formats {', '.join(FORMATS)}; send one of those"
        ) from error


def _bright_border(pixels: NDArray[np.uint8]) -> bool:
    edges = (pixels[:, 0], pixels[:, -1], pixels[:, :, 0], pixels[:, :, -1])
    return float(np.mean([edge.mean() for edge in edges])) > 127.5


def _padded(digit: NDArray[np.float32], height: int, width: int) -> Tensor:
    """In the middle of a larger canvas, ``[1, H, W]``."""
    canvas = torch.zeros(1, height, width)
    top, left = (height - digit.shape[0]) // 2, (width - digit.shape[1]) // 2
    canvas[0, top : top + digit.shape[0], left : left + digit.shape[1]] = torch.from_numpy(digit)
    return canvas
