"""Every picture of a split turned by one angle, in the middle of a black canvas: one point of a rotation sweep."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from torchcaps.data.loader import Batch
from torchcaps.data.source import Split
from torchcaps.data.warp import affine_coordinates, resample
from torchcaps.data.window import to_unit_float
from torchcaps.errors import DataError

__all__ = ["RotatedDigits"]


class RotatedDigits:
    """The pictures of a split, turned clockwise by ``degrees`` about their middle, resampled once, bilinearly.

    >>> from torchcaps.data import sample_digits
    >>> rotated = RotatedDigits(sample_digits("test"), degrees=-30)
    >>> len(rotated), next(rotated.batches(100)).images.shape
    (500, torch.Size([100, 1, 40, 40]))
    """

    def __init__(self, split: Split, degrees: float, size: int = 40, device: torch.device | str = "cpu") -> None:
        height, width = split.images.shape[-2:]
        if size < max(height, width):
            raise DataError(f"pictures of {height}×{width} do not fit a canvas of {size}×{size}; choose a larger one")
        self.degrees, self.size, self.device = degrees, size, torch.device(device)
        self._split = split

    def __len__(self) -> int:
        return len(self._split)

    def turned(self, images: Tensor) -> Tensor:
        """uint8 ``[B, C, H, W]`` to ``[B, C, size, size]``."""
        angle = math.radians(self.degrees)
        cosine, sine = math.cos(angle), math.sin(angle)

        def vector(*numbers: float) -> Tensor:
            return torch.tensor(numbers, dtype=torch.float64, device=images.device)

        matrix = torch.stack((vector(cosine, sine), vector(-sine, cosine)))  # on (y, x)
        middle = vector(*((side - 1) / 2 for side in images.shape[-2:]))
        target = vector(*[(self.size - 1) / 2] * 2)
        places = affine_coordinates(matrix.expand(len(images), 2, 2), middle, target, (self.size, self.size))
        return resample(images, *places)

    def batches(self, batch_size: int) -> Iterator[Batch]:
        """All pictures in order as floats 0 … 1, for measuring; the last batch may be shorter."""
        for images, labels in zip(
            self._split.images.split(batch_size), self._split.labels.split(batch_size), strict=True
        ):
            yield Batch(to_unit_float(self.turned(images.to(self.device))), labels.to(self.device))
