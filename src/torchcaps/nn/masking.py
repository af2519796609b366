"""Choosing classes, and hiding the capsules of all others from the decoder."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps import ops

__all__ = ["longest_class", "mask_classes", "top_classes"]


def longest_class(lengths: Tensor) -> Tensor:
    """The prediction for pictures of one thing: ``[B, J]`` → ``[B]``."""
    return lengths.argmax(dim=1)


def top_classes(lengths: Tensor, count: int = 2) -> Tensor:
    """The prediction for pictures of ``count`` things, longest capsule first: ``[B, J]`` → ``[B, count]``."""
    if not 1 <= count <= lengths.shape[1]:
        raise ValueError(f"cannot take {count} classes out of {lengths.shape[1]}")
    return lengths.topk(count, dim=1).indices


def mask_classes(capsules: Tensor, classes: Tensor) -> Tensor:
    """Set every capsule to zero except those of the given classes.

    Shape:
        capsules: ``[B, J, D]``. classes: class numbers ``[B]`` or ``[B, K]``, or bool ``[B, J]``.
        Returns ``[B, J, D]``.
    """
    numbers = classes.dtype != torch.bool and not classes.is_floating_point() and classes.ndim in (1, 2)
    keep = ops.multi_hot(classes, capsules.shape[1]).bool() if numbers else classes
    if keep.dtype != torch.bool or keep.shape != capsules.shape[:2]:
        raise ValueError(
            f"classes must be class numbers [B] or [B, K], or bool [B, J] = {list(capsules.shape[:2])}, "
            f"got {classes.dtype} {list(classes.shape)}"
        )
    return capsules.masked_fill(~keep.unsqueeze(2), 0)
