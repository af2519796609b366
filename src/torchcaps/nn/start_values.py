"""The start values of the authors' code."""

from __future__ import annotations

from torch import Tensor
from torch.nn import init

__all__ = ["BIAS_START", "CAPSULE_STD", "truncated_normal_"]

CAPSULE_STD = 0.1  # primary capsules, W and decoder; the first convolution starts with 0.05
BIAS_START = 0.1  # every bias


def truncated_normal_(weight: Tensor, std: float) -> None:
    """Fill in place from a normal distribution cut at two standard deviations."""
    init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)
