"""Augmentations that bend the picture: affine maps and elastic distortion, each alone or both in one step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from einops import rearrange
from torch import Tensor

from torchcaps.data.augment.base import Augmentation, require
from torchcaps.data.random import RandomStream
from torchcaps.data.warp import affine_coordinates, draw_affine, resample
from torchcaps.ranges import Many, Number, Whole

__all__ = ["Affine", "Deform", "Elastic"]

# The pulls are drawn with counters that no example has, so that they do not follow the affine map.
PULLS = 1 << 43

Pull = Annotated[float, Number(0, 1000)]
Spacing = Annotated[int, Whole(1, 4096)]


@dataclass(frozen=True)
class Affine(Augmentation):
    """Rotate by up to ± ``degrees``, shear by up to ± ``shear``, scale each axis within ``scale``, and move by up to
    ± ``translate`` pixels (fractions too), about the middle of the picture; what leaves the picture is lost.
    """

    degrees: Annotated[float, Number(0, 360)] = 15.0
    shear: Annotated[float, Number(0, 10)] = 0.1
    scale: Annotated[tuple[float, float], Many(Number(0, 1000, above=True), 2, 2)] = (0.9, 1.1)
    translate: Annotated[float, Number(0, 1000)] = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", tuple(self.scale))  # recipes write a list
        _check_affine(self)

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        return resample(images, *_affine_places(self, images, counter, random))


@dataclass(frozen=True)
class Elastic(Augmentation):
    """Pull a grid of points, ``spacing`` pixels apart, by up to ± ``pixels`` each and let the picture follow smoothly.

    The displacement between the points is a cubic B-spline; no pixel moves further than ``pixels``
    along either axis.
    """

    pixels: Pull = 4.0
    spacing: Spacing = 7

    def __post_init__(self) -> None:
        _check_elastic(self)

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        H, W = images.shape[-2:]
        moved = _elastic_moves(self, images, counter, random)
        rows = torch.arange(H, device=images.device)[:, None]
        columns = torch.arange(W, device=images.device)
        return resample(images, rows + moved[:, 0], columns + moved[:, 1])


@dataclass(frozen=True)
class Deform(Augmentation):
    """What :class:`Affine` and :class:`Elastic` do, in one step and sharply.

    A pixel is read where the affine map says, moved on by the pulls: once, and by a cubic. Two steps that each read
    between pixels leave strokes so soft that networks failed on sharp ones (docs/reproduction.md).
    """

    degrees: Annotated[float, Number(0, 360)] = 15.0
    shear: Annotated[float, Number(0, 10)] = 0.1
    scale: Annotated[tuple[float, float], Many(Number(0, 1000, above=True), 2, 2)] = (0.9, 1.1)
    translate: Annotated[float, Number(0, 1000)] = 2.0
    pixels: Pull = 2.0
    spacing: Spacing = 7

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", tuple(self.scale))  # recipes write a list
        _check_affine(self)
        _check_elastic(self)

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        y, x = _affine_places(self, images, counter, random)
        moved = _elastic_moves(self, images, counter + PULLS, random)
        return resample(images, y + moved[:, 0], x + moved[:, 1], sharp=True)


def _check_affine(owner: Affine | Deform) -> None:
    require(
        len(owner.scale) == 2 and 0 < owner.scale[0] <= owner.scale[1],
        owner,
        "scale must be two factors above 0, the smaller first",
    )
    require(
        min(owner.degrees, owner.shear, owner.translate) >= 0, owner, "degrees, shear and translate must be 0 or more"
    )


def _check_elastic(owner: Elastic | Deform) -> None:
    require(owner.pixels >= 0 and owner.spacing >= 1, owner, "pixels must be 0 or more and spacing 1 or more")


def _affine_places(
    settings: Affine | Deform, images: Tensor, counter: Tensor, random: RandomStream
) -> tuple[Tensor, Tensor]:
    """Where each pixel of the moved picture comes from: y and x, float64 ``[B, H, W]`` each."""
    H, W = images.shape[-2:]
    matrix = draw_affine(random, counter, settings.degrees, settings.shear, settings.scale)
    # Lanes 0 to 3 made the matrix; 4 and 5 are the two directions of the move.
    unit = random.uniform(counter, lanes=6)[:, 4:].double()
    centre = torch.stack([torch.full_like(unit[:, 0], (side - 1) / 2) for side in (H, W)], dim=1)
    moved = centre + (2 * unit - 1) * settings.translate
    return affine_coordinates(matrix, centre, moved, (H, W))


def _elastic_moves(settings: Elastic | Deform, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
    """How far the pulls move each pixel, down and to the right: ``[B, 2, H, W]``."""
    H, W = images.shape[-2:]
    spline_y = spline_basis(H, settings.spacing, images.device)
    spline_x = spline_basis(W, settings.spacing, images.device)
    grid = spline_y.shape[1], spline_x.shape[1]
    pulls = random.uniform(counter, 2 * grid[0] * grid[1], low=-settings.pixels, high=settings.pixels)
    pulls = rearrange(pulls, "B (direction Y X) -> B direction Y X", direction=2, Y=grid[0])
    return torch.einsum("HY,BaYX,WX->BaHW", spline_y, pulls, spline_x)


def spline_basis(length: int, spacing: int, device: torch.device) -> Tensor:
    """Weight of each grid point at each pixel, float32 ``[length, points]``; rows sum to 1."""
    points = (length - 1) // spacing + 4  # one before the first pixel, and enough after the last
    pixel = torch.arange(length, device=device, dtype=torch.float32)
    point = torch.arange(points, device=device, dtype=torch.float32) - 1
    distance = (pixel[:, None] / spacing - point).abs()
    near = 2 / 3 - distance**2 + distance**3 / 2
    far = (2 - distance).clamp(min=0) ** 3 / 6
    return torch.where(distance < 1, near, far)
