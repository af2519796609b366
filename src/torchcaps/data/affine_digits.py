"""Digits on 40×40: placed at random to train on, and an *affnist-like* test set of affine copies.

affNIST itself is a published file, which the readers load. Where it is out of reach, ``AffineDigits`` makes a test
set by the same rules from the MNIST test set. It is not affNIST, and its name says so wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import torch
from einops import repeat
from torch import Tensor

from torchcaps.data.augment.geometric import Place
from torchcaps.data.loader import Batch
from torchcaps.data.random import RandomStream
from torchcaps.data.source import Split
from torchcaps.data.warp import affine_coordinates, draw_affine, resample
from torchcaps.data.window import to_unit_float
from torchcaps.errors import DataError

__all__ = ["AffineDigits", "ink_extent", "place_on_canvas"]

AnySplit = TypeVar("AnySplit", bound=Split)


def place_on_canvas(split: AnySplit, size: int = 40, seed: int = 0) -> AnySplit:
    """Each picture at one random place of a black canvas, the whole picture inside: the paper's affNIST training set.

    The authors' code pads by 6 and shifts by up to 6, which for 28×28 on 40×40 are the same 13×13 places. For a new
    place in every epoch use the augmentation ``place`` instead.

    Shape:
        images uint8 ``[N, C, H, W]`` to ``[N, C, size, size]``; labels, groups and attributes stay.

    >>> from torchcaps.data import sample_digits
    >>> place_on_canvas(sample_digits("train")).images.shape
    torch.Size([1000, 1, 40, 40])
    """
    counter = torch.arange(len(split), device=split.images.device)
    images = Place(size)(split.images, counter, RandomStream(seed, "place-on-canvas"))
    return type(split)(images, split.labels, split.groups, split.attributes)


class AffineDigits:
    """The *affnist-like* test set: ``copies`` affine copies of each digit on a black canvas, by index.

    Copy k is made from digit ``k // copies``: rotated by up to ±20°, sheared by up to ±0.2, each axis scaled by 0.8
    to 1.2, all uniform; then moved to a place drawn uniformly among those at which no ink is lost, or comes nearer to
    the edge than ``margin`` pixels. The picture is resampled once, bilinearly, in fixed point. Where the transformed
    ink would not fit at all, the copy is made smaller by what is missing.

    >>> from torchcaps.data import sample_digits
    >>> digits = AffineDigits(sample_digits("test"))
    >>> digits.name, len(digits), digits.examples(torch.tensor([0, 15_999])).images.shape
    ('affnist-like', 16000, torch.Size([2, 1, 40, 40]))
    """

    name = "affnist-like"

    def __init__(
        self,
        split: Split,
        copies: int = 32,
        seed: int = 0,
        size: int = 40,
        degrees: float = 20.0,
        shear: float = 0.2,
        scale: tuple[float, float] = (0.8, 1.2),
        margin: float = 0.0,
        device: torch.device | str = "cpu",
    ) -> None:
        if copies < 1 or len(split) == 0:
            raise DataError(f"affnist-like needs a picture and at least one copy of it, got {len(split)} and {copies}")
        if not 0 <= 2 * margin < size - 1:
            raise DataError(f"a margin of {margin} pixels leaves no room on {size}×{size}; choose a smaller one")
        self.copies, self.seed, self.size, self.margin = copies, seed, size, margin
        self.degrees, self.shear, self.scale = degrees, shear, scale
        self.device = torch.device(device)
        self._images = split.images.to(self.device)
        self._labels = split.labels.to(self.device)
        self._matrix_random = RandomStream(seed, "affnist-like/matrix")
        self._place_random = RandomStream(seed, "affnist-like/place")

    def __len__(self) -> int:
        return len(self._labels) * self.copies

    def transforms(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Matrix and translation of each copy: ``target = matrix · (source − middle) + translation`` in (y, x) pixels.

        Shape:
            indices: int64 ``[B]``. Output: float64 ``[B, 2, 2]`` and ``[B, 2]``.
        """
        images = self._images[indices // self.copies]
        matrix = draw_affine(self._matrix_random, indices, self.degrees, self.shear, self.scale)
        low, high = ink_extent(images, matrix)
        room = self.size - 1 - 2 * self.margin
        shrink = (room / (high - low).amax(1)).clamp(max=1.0)  # [B]
        matrix, low, high = matrix * shrink[:, None, None], low * shrink[:, None], high * shrink[:, None]
        unit = self._place_random.uniform(indices, lanes=2).double()
        # Ink must stay between margin and margin + room, so the translation between these less low and high.
        return matrix, self.margin - low + unit * (room - high + low)

    def examples(self, indices: Tensor) -> Batch:
        """Make these copies; int64 ``[B]``, each below ``len(self)``. Pictures come as uint8."""
        indices = indices.to(self.device)
        digits = indices // self.copies
        images = self._images[digits]
        matrix, translation = self.transforms(indices)
        coordinates = affine_coordinates(matrix, _middle(images), translation, (self.size, self.size))
        return Batch(resample(images, *coordinates), self._labels[digits])

    def batches(self, batch_size: int, dtype: torch.dtype = torch.float32) -> Iterator[Batch]:
        """All copies in order as floats 0 … 1, for measuring; the last batch may be shorter."""
        for first in range(0, len(self), batch_size):
            indices = torch.arange(first, min(first + batch_size, len(self)), device=self.device)
            batch = self.examples(indices)
            yield Batch(to_unit_float(batch.images, dtype), batch.labels)


def _middle(images: Tensor) -> Tensor:
    H, W = images.shape[-2:]
    return torch.tensor([(H - 1) / 2, (W - 1) / 2], dtype=torch.float64, device=images.device)


def ink_extent(images: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Lowest and highest (y, x) that a picture's ink can reach after the matrix, about the picture's middle.

    A pixel of ink reaches up to one pixel around its centre when it is resampled bilinearly (and a little more,
    since coordinates are rounded to 1/256), and the corners of that square move by |m₁| + |m₂| along each axis.

    Shape:
        images: ``[B, C, H, W]``; matrix: float64 ``[B, 2, 2]``. Output: float64 ``[B, 2]`` twice; a black picture
        has the extent of its middle.
    """
    H, W = images.shape[-2:]
    ink = (images != 0).any(1)  # [B, H, W]
    middle = _middle(images)
    rows = torch.arange(H, device=images.device) - middle[0]
    columns = torch.arange(W, device=images.device) - middle[1]
    limits = []
    for axis in range(2):
        along_y, along_x = matrix[:, axis].unbind(1)
        place = along_y[:, None, None] * rows[:, None] + along_x[:, None, None] * columns  # [B, H, W]
        reach = (along_y.abs() + along_x.abs()) * (1 + 1 / 256)
        lowest = place.masked_fill(~ink, torch.inf).amin((1, 2)) - reach
        highest = place.masked_fill(~ink, -torch.inf).amax((1, 2)) + reach
        limits.append((lowest, highest))
    low, high = (torch.stack(side, dim=1) for side in zip(*limits, strict=True))
    empty = repeat(~ink.any(2).any(1), "B -> B coordinate", coordinate=2)
    return low.masked_fill(empty, 0.0), high.masked_fill(empty, 0.0)
