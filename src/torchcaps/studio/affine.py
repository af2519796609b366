"""Turn, shift, scale and slant a picture over the whole range of a slider."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchcaps.data.moved_digits import MOVES as KINDS
from torchcaps.data.moved_digits import Move as Kind
from torchcaps.data.moved_digits import move

__all__ = ["KINDS", "Kind", "slider_values", "transform"]

STEPS = 41
LARGEST_SCALE = 2.0


def slider_values(kind: Kind, image_shape: tuple[int, int, int]) -> Tensor:
    """The 41 values of a slider, float32; the one in the middle leaves the picture as it is.

    ``rotate`` goes from −180 to 180 degrees, clockwise when positive; ``shift-x`` and ``shift-y`` to half the side in
    pixels, right and down when positive; ``scale`` is a factor from ½ to 2, evenly spaced in its logarithm; ``shear``
    is the angle of the slant, −45 to 45 degrees.
    """
    unit = torch.linspace(-1, 1, STEPS, dtype=torch.float64)
    unit[STEPS // 2] = 0
    _, H, W = image_shape
    if kind == "scale":
        return (unit * math.log(LARGEST_SCALE)).exp().float()
    reach = {"rotate": 180.0, "shift-x": W / 2, "shift-y": H / 2, "shear": 45.0}[kind]
    return (unit * reach).float()


def transform(image: Tensor, kind: Kind, values: Tensor) -> Tensor:
    """One picture, changed by each of the values about its middle; what moves in is black.

    Shape:
        image: uint8 ``[C, H, W]``. values: ``[N]``. Returns uint8 ``[N, C, H, W]``.

    Example:
        >>> import torch
        >>> from torchcaps.studio.affine import transform
        >>> image = torch.tensor([[[0, 0, 0], [0, 0, 9], [0, 0, 0]]], dtype=torch.uint8)
        >>> transform(image, "rotate", torch.tensor([90.0]))[0, 0].tolist()
        [[0, 0, 0], [0, 0, 0], [0, 9, 0]]
    """
    return move(image.expand(len(values), -1, -1, -1), kind, values)
