"""Fused votes and routing for GPUs; the derivation and the byte counts are in README.md of the folder above.

Imports without Triton: ``supports`` then says so, and ``capsule_linear`` is None.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.routing.triton.support import supports

__all__ = ["capsule_linear", "supports"]

capsule_linear: Callable[[Tensor, Tensor, Tensor | None, RoutingOptions], Tensor] | None

try:
    from torchcaps.ops.routing.triton.op import capsule_linear
except ImportError as error:
    if error.name is None or not error.name.startswith("triton"):
        raise
    capsule_linear = None
