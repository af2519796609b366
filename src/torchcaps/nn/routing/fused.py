"""Which routings a layer runs in the op that forms the votes itself: dynamic routing and its nearest relatives."""

from __future__ import annotations

from typing import Any

from torchcaps.nn.routing.agreement import (
    AverageRouting,
    DynamicRouting,
    FixedPointRouting,
    LeakyRouting,
    NormalizedRouting,
)
from torchcaps.nn.routing.clustering import KMeansRouting
from torchcaps.ops.routing.options import RoutingOptions

__all__ = ["fused_options"]


def fused_options(routing: Any) -> RoutingOptions | None:
    """The same routing as options of :func:`torchcaps.ops.capsule_linear`; none where it must be handed votes.

    One derived from these classes may do anything else, so it is handed votes, too.

    >>> from torchcaps import nn
    >>> fused_options(nn.FixedPointRouting(iterations=2)).centre
    'capsule'
    """
    kind = type(routing)
    if kind in (DynamicRouting, LeakyRouting):
        options: RoutingOptions = routing.options
        return options
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
