"""Augmentations that only move or blank pixels: integer gathers, the same bytes on every device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from torchcaps.data.augment.base import Augmentation, require
from torchcaps.data.random import RandomStream
from torchcaps.data.window import cut_windows, pad_pictures
from torchcaps.ranges import Share, Whole

__all__ = ["Crop", "Cutout", "Flip", "Place", "Shift"]

Side = Annotated[int, Whole(1, 4096)]


@dataclass(frozen=True)
class Shift(Augmentation):
    """Move by up to ``pixels`` in each direction, zeros coming in: the paper's only augmentation, with 2."""

    pixels: Annotated[int, Whole(0, 1000)] = 2

    def __post_init__(self) -> None:
        require(self.pixels >= 0, self, "pixels must be 0 or more")

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        H, W = images.shape[-2:]
        top, left = random.integers(counter, 2 * self.pixels + 1, lanes=2).unbind(-1)
        return cut_windows(pad_pictures(images, self.pixels), None, top, left, (H, W))


@dataclass(frozen=True)
class Crop(Augmentation):
    """A square of ``size`` pixels from a random place, after ``padding`` black pixels on each side; central at test."""

    size: Side
    padding: Annotated[int, Whole(0, 1000)] = 0

    def __post_init__(self) -> None:
        require(self.size >= 1 and self.padding >= 0, self, "size must be 1 or more and padding 0 or more")

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        padded = pad_pictures(images, self.padding)
        spare_rows, spare_columns = self._spare(padded)
        top = random.integers(counter, spare_rows + 1, lanes=2)[:, 0]
        left = random.integers(counter, spare_columns + 1, lanes=2)[:, 1]
        return cut_windows(padded, None, top, left, (self.size, self.size))

    def evaluate(self, images: Tensor) -> Tensor:
        padded = pad_pictures(images, self.padding)
        top, left = (spare // 2 for spare in self._spare(padded))
        return padded[..., top : top + self.size, left : left + self.size]

    def _spare(self, padded: Tensor) -> tuple[int, int]:
        H, W = padded.shape[-2:]
        require(self.size <= min(H, W), self, f"the square must fit the padded pictures, which are {H}×{W}")
        return H - self.size, W - self.size


@dataclass(frozen=True)
class Place(Augmentation):
    """The whole picture at a random place of a black canvas of ``size`` pixels; in the middle at test.

    With 40 this is the training set for affNIST; the authors' code (pad 6, shift up to 6) draws the same places.

    Args:
        by_ink: any place at which no ink is lost, up to the edge, where the black border of a picture would not fit.
    """

    size: Side = 40
    by_ink: bool = False

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        spare = self._spare(images)
        if self.by_ink:
            return self._anywhere(images, random.uniform(counter, lanes=2))
        top, left = random.integers(counter, spare + 1, lanes=2).unbind(-1)
        return cut_windows(pad_pictures(images, spare), None, top, left, (self.size, self.size))

    def evaluate(self, images: Tensor) -> Tensor:
        spare = self._spare(images)
        start = spare - spare // 2
        return pad_pictures(images, spare)[..., start : start + self.size, start : start + self.size]

    def _anywhere(self, images: Tensor, unit: Tensor) -> Tensor:
        margin = self.size - 1
        corners: list[Tensor] = []
        for axis, share in zip((2, 3), unit.unbind(-1), strict=True):
            first, last = _ink_range(images, axis)
            places = self.size - (last - first)  # of the first row or column of ink
            place = (share * places).long().minimum(places - 1)
            corners.append(margin + first - place)
        return cut_windows(pad_pictures(images, margin), None, corners[0], corners[1], (self.size, self.size))

    def _spare(self, images: Tensor) -> int:
        H, W = images.shape[-2:]
        require(H == W <= self.size, self, f"the pictures must be square and fit the canvas, they are {H}×{W}")
        return self.size - H


def _ink_range(images: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """First and last row (axis 2) or column (axis 3) with ink, int64 ``[B]`` each; all of a black picture."""
    ink = (images != 0).any(1).any(4 - axis).to(torch.int32)  # [B, H] or [B, W]
    return ink.argmax(1), ink.shape[1] - 1 - ink.flip(1).argmax(1)


@dataclass(frozen=True)
class Flip(Augmentation):
    """Left and right change places with the given probability."""

    probability: Share = 0.5

    def __post_init__(self) -> None:
        require(0 <= self.probability <= 1, self, "probability must be 0 to 1")

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        flipped = random.uniform(counter) < self.probability  # [B, 1]
        return torch.where(flipped[..., None, None], images.flip(-1), images)


@dataclass(frozen=True)
class Cutout(Augmentation):
    """A black square of ``size`` pixels; its centre is any pixel, so it may reach over the edge."""

    size: Side = 8

    def __post_init__(self) -> None:
        require(self.size >= 1, self, "size must be 1 or more")

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        inside = []
        for axis, length in enumerate(images.shape[-2:]):
            centre = random.integers(counter, length, lanes=2)[:, axis]
            distance = torch.arange(length, device=images.device) - (centre[:, None] - self.size // 2)
            inside.append((distance >= 0) & (distance < self.size))  # [B, length]
        hole = inside[0][:, None, :, None] & inside[1][:, None, None, :]  # [B, 1, H, W]
        return images.masked_fill(hole, 0)
