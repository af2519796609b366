"""Which routings a layer runs in an op that forms the votes itself: dynamic routing and its nearest relatives."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchcaps import ops
from torchcaps.nn.routing.agreement import (
    AverageRouting,
    DynamicRouting,
    FixedPointRouting,
    LeakyRouting,
    NormalizedRouting,
)
from torchcaps.nn.routing.calling import takes_bias
from torchcaps.nn.routing.clustering import KMeansRouting
from torchcaps.nn.routing.learned import SelfAttentionRouting
from torchcaps.ops.routing.family.self_attention import SELF_ATTENTION
from torchcaps.ops.routing.options import RoutingOptions

__all__ = ["fused_capsules", "fused_options"]


def fused_capsules(
    routing: Any, u: Tensor, weight: Tensor, bias: Tensor | None, mask: Tensor | None, backend: str
) -> Tensor:
    """Capsules ``[B, J, D]`` from lower ones ``[B, I, P]`` in one op, for a routing that has :func:`fused_options`."""
    options = fused_options(routing)
    assert options is not None
    if options is SELF_ATTENTION:
        return ops.self_attention_linear(u, weight, routing.priors, mask, routing.settings["squash"], backend)
    return ops.capsule_linear(
        u,
        weight,
        options.iterations,
        bias if takes_bias(routing) else None,
        options.leaky,
        backend,
        mask=mask,
        gradient=options.gradient,
        centre=options.centre,
        sharpness=options.sharpness,
    )


def fused_options(routing: Any) -> RoutingOptions | None:
    """The same routing as options of the op that forms the votes; none where it must be handed them.

    One derived from these classes may do anything else, so it is handed votes, too.

    >>> from torchcaps import nn
    >>> fused_options(nn.FixedPointRouting(iterations=2)).centre
    'capsule'
    """
    kind = type(routing)
    if kind in (DynamicRouting, LeakyRouting):
        options: RoutingOptions = routing.options
        return options
    if kind is SelfAttentionRouting:
        return SELF_ATTENTION
    relatives = (AverageRouting, FixedPointRouting, NormalizedRouting, KMeansRouting)
    if kind not in relatives or routing.settings["squash"] != "paper":
        return None
    if kind is AverageRouting:
        return RoutingOptions(iterations=1)
    iterations = routing.settings["iterations"]
    if kind is FixedPointRouting:
        return RoutingOptions(iterations, centre="capsule")
    if kind is NormalizedRouting:
        return RoutingOptions(iterations, centre="direction")
    if routing.settings["distance"] != "inner":
        return None
    return RoutingOptions(iterations, centre="direction", sharpness=routing.settings["temperature"])
