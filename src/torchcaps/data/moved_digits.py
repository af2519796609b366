"""Pictures turned, shifted, scaled or slanted by a definite amount: one point of a sweep, or one of a slider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import torch
from torch import Tensor

from torchcaps.data.loader import Batch
from torchcaps.data.source import Split
from torchcaps.data.warp import affine_coordinates, resample
from torchcaps.data.window import to_unit_float
from torchcaps.errors import DataError

__all__ = ["MOVES", "Move", "MovedDigits", "move"]

Move = Literal["rotate", "shift-x", "shift-y", "scale", "shear"]
MOVES: tuple[str, ...] = get_args(Move)


def move(images: Tensor, kind: Move, amounts: Tensor, size: int | None = None) -> Tensor:
    """Each picture moved about its middle by its own amount, resampled once, bilinearly; what comes in is black.

    ``rotate`` is in degrees, clockwise when positive; ``shift-x`` and ``shift-y`` in pixels, right and down when
    positive; ``scale`` is a factor; ``shear`` is the angle of the slant in degrees, rows above the middle going right
    when positive.

    Shape:
        images: uint8 or float ``[B, C, H, W]``; amounts: ``[B]``. Output: ``[B, C, H, W]`` in the same type, or
        ``[B, C, size, size]`` with the middle of the picture in the middle of the canvas.

    >>> image = torch.tensor([[[[0, 0, 0], [0, 0, 9], [0, 0, 0]]]], dtype=torch.uint8)
    >>> move(image, "rotate", torch.tensor([90.0]))[0, 0].tolist()
    [[0, 0, 0], [0, 0, 0], [0, 9, 0]]
    """
    if kind not in MOVES:
        raise DataError(f"there is no move {kind!r}; choose from {', '.join(MOVES)}")
    if images.ndim != 4 or amounts.shape != images.shape[:1]:
        raise DataError(
            f"pictures must be [B, C, H, W] with an amount for each, got {list(images.shape)} and {list(amounts.shape)}"
        )
    if not amounts.isfinite().all() or (kind == "scale" and not (amounts > 0).all()):
        raise DataError("amounts must be finite, and above 0 for a scale")
    amounts = amounts.to(images.device, torch.float64)
    B, (H, W) = len(images), images.shape[-2:]
    rows, columns = (H, W) if size is None else (size, size)

    def middle(height: int, width: int) -> Tensor:
        return torch.tensor([(height - 1) / 2, (width - 1) / 2], dtype=torch.float64, device=images.device)

    matrix = torch.eye(2, dtype=torch.float64, device=images.device).repeat(B, 1, 1)  # on (y, x)
    target = middle(rows, columns).repeat(B, 1)
    if kind == "rotate":
        angle = torch.deg2rad(amounts)
        matrix[:, 0, 0] = matrix[:, 1, 1] = angle.cos()
        matrix[:, 0, 1], matrix[:, 1, 0] = angle.sin(), -angle.sin()
    elif kind == "shear":
        matrix[:, 1, 0] = -torch.deg2rad(amounts).tan()
    elif kind == "scale":
        matrix = matrix * amounts[:, None, None]
    else:
        target[:, 1 if kind == "shift-x" else 0] += amounts
    return resample(images, *affine_coordinates(matrix, middle(H, W), target, (rows, columns)))


class MovedDigits:
    """The pictures of a split, all moved alike (:func:`move`), in the middle of a black canvas.

    >>> from torchcaps.data import sample_digits
    >>> turned = MovedDigits(sample_digits("test"), "rotate", -30)
    >>> len(turned), next(turned.batches(100)).images.shape
    (500, torch.Size([100, 1, 40, 40]))
    """

    def __init__(
        self, split: Split, kind: Move, amount: float, size: int = 40, device: torch.device | str = "cpu"
    ) -> None:
        height, width = split.images.shape[-2:]
        if size < max(height, width):
            raise DataError(f"pictures of {height}×{width} do not fit a canvas of {size}×{size}; choose a larger one")
        self.kind, self.amount, self.size, self.device = kind, amount, size, torch.device(device)
        self._split = split

    def __len__(self) -> int:
        return len(self._split)

    def moved(self, images: Tensor) -> Tensor:
        """``[B, C, H, W]`` to ``[B, C, size, size]``, uint8 or float."""
        return move(images, self.kind, torch.full((len(images),), float(self.amount)), self.size)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """All pictures in order as floats 0 … 1, for measuring; the last batch may be shorter."""
        for images, labels in zip(
            self._split.images.split(batch_size), self._split.labels.split(batch_size), strict=True
        ):
            yield Batch(to_unit_float(self.moved(images.to(self.device))), labels.to(self.device))
