"""Fused votes and routing for GPUs; the derivation and the byte counts are in README.md of the folder above.

Triton is imported when the kernels are first used, so the package works without it and starts quickly.
"""

from __future__ import annotations

from torch import Tensor

from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.routing.triton.support import supports

__all__ = ["capsule_linear", "supports"]


def capsule_linear(u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions) -> Tensor:
    """``u`` ``[B, I, P]``, ``weight`` ``[I, J, D, P]`` or ``[J, D, P]`` of the same dtype → capsules ``[B, J, D]``."""
    from torchcaps.ops.routing.triton.op import capsule_linear as fused

    return fused(u, weight, bias, options)
