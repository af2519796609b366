"""Two digits on one canvas, each moved from the middle (as MultiMNIST lays them over each other)."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["overlay", "place"]


def overlay(
    first: Tensor, second: Tensor, shifts: tuple[tuple[int, int], tuple[int, int]], size: tuple[int, int]
) -> Tensor:
    """The sum of both pictures, which stops at 255.

    Shape:
        first, second: uint8 ``[C, H, W]``. shifts: (right, down) of each in pixels. Returns uint8 ``[C, *size]``.

    Example:
        >>> import torch
        >>> from torchcaps.studio.overlay import overlay
        >>> dot = torch.full((1, 1, 1), 200, dtype=torch.uint8)
        >>> overlay(dot, dot, ((0, 0), (1, 0)), (1, 3)).tolist(), overlay(dot, dot, ((0, 0), (0, 0)), (1, 1)).item()
        ([[[0, 200, 200]]], 255)
    """
    base, other = (place(picture, shift, size) for picture, shift in zip((first, second), shifts, strict=True))
    return base + torch.minimum(other, 255 - base)


def place(picture: Tensor, shift: tuple[int, int], size: tuple[int, int]) -> Tensor:
    """A picture on a black canvas, moved (right, down) from its middle; what leaves the canvas is lost."""
    C, H, W = picture.shape
    canvas = picture.new_zeros(C, *size)
    top, left = (size[0] - H) // 2 + shift[1], (size[1] - W) // 2 + shift[0]
    rows = slice(max(0, top), min(size[0], top + H))
    columns = slice(max(0, left), min(size[1], left + W))
    if rows.start < rows.stop and columns.start < columns.stop:
        canvas[:, rows, columns] = picture[
            :, rows.start - top : rows.stop - top, columns.start - left : columns.stop - left
        ]
    return canvas
