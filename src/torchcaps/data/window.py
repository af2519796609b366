"""Cut a window out of each picture at a place of its own, by one integer gather."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["cut_windows", "pad_pictures", "to_unit_float"]


def pad_pictures(images: Tensor, margin: int) -> Tensor:
    """Surround each picture ``[B, C, H, W]`` with ``margin`` black pixels on all four sides."""
    return F.pad(images, (margin,) * 4) if margin else images


def cut_windows(images: Tensor, pictures: Tensor | None, top: Tensor, left: Tensor, size: tuple[int, int]) -> Tensor:
    """Windows of one size, each from the picture and the place that the indices name.

    All possible windows are one strided view without any copy; picking from it is a single kernel, exact for
    every type, and no index tensor has the size of a picture.

    Shape:
        images: ``[N, C, H, W]``; pictures, top, left: int64 of one shape ``[*]``. Output: ``[*, C, *size]``.
        ``pictures=None`` takes window b from picture b; top and left are then ``[N]``.

    >>> image = torch.arange(12).reshape(1, 1, 3, 4)
    >>> cut_windows(image, None, torch.tensor([1]), torch.tensor([2]), (2, 2)).flatten().tolist()
    [6, 7, 10, 11]
    """
    if pictures is None:
        pictures = torch.arange(len(images), device=images.device)
    every_window = images.unfold(2, size[0], 1).unfold(3, size[1], 1)  # [N, C, H', W', *size]
    return every_window[pictures, :, top, left]


def to_unit_float(images: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """0 … 255 in uint8 to 0 … 1; floats are taken to be in their range already and change only their type.

    A product with 1/255 and not a division, which the two kinds of device round differently.
    """
    if images.dtype == torch.uint8:
        return images.to(dtype).mul_(1 / 255)
    return images.to(dtype)
