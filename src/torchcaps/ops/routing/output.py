"""What every routing of the family returns."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from torchcaps.ops.routing.trace import RoutingTrace

__all__ = ["RoutingOutput"]


class RoutingOutput(NamedTuple):
    """Upper capsules and how present each of them is.

    Shape:
        capsules: ``[B, J, D]``. activations: ``[B, J]`` in [0, 1]; the lengths of the capsules where they are
        squashed, a number of its own where they are not. trace: when it was asked for.
    """

    capsules: Tensor
    activations: Tensor
    trace: RoutingTrace | None = None
