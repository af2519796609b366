"""The start values of the authors' code."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["BIAS_START", "CAPSULE_STD", "truncated_normal_"]

CAPSULE_STD = 0.1  # primary capsules, W and decoder; the first convolution starts with 0.05
BIAS_START = 0.1  # every bias


@torch.no_grad()
def truncated_normal_(weight: Tensor, std: float) -> None:
    """Fill in place from a normal distribution; what falls outside two standard deviations is drawn again.

    The same distribution as :func:`torch.nn.init.trunc_normal_`, several times faster on large weights.
    """
    if weight.is_meta:
        return
    flat = torch.empty(weight.numel(), device=weight.device, dtype=weight.dtype).normal_(std=std)
    outside = (flat.abs() > 2 * std).nonzero().squeeze(1)
    while len(outside):
        drawn = torch.empty(len(outside), device=weight.device, dtype=weight.dtype).normal_(std=std)
        flat[outside] = drawn
        outside = outside[drawn.abs() > 2 * std]
    weight.copy_(flat.view(weight.shape))  # whatever its memory format
