"""How a network's class capsules are routed, whatever network it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from torchcaps.models import CapsuleModel, Model
from torchcaps.nn import RoutingAlgorithm

__all__ = ["RoutingFacts", "routing_facts"]

Normalizes = Literal["parents", "children", "nothing"]


@dataclass(frozen=True)
class RoutingFacts:
    """All ``None`` for a network without capsules; ``iterations`` also for a routing that has none.

    Attributes:
        scores: what the scores of the classes are: lengths of vectors, or activations computed in their place.
        normalizes: over what the coefficients sum to 1; see :class:`torchcaps.nn.RoutingAlgorithm`.
    """

    name: str | None = None
    iterations: int | None = None
    leaky: bool | None = None
    bias: bool | None = None
    scores: Literal["lengths", "activations"] | None = None
    normalizes: Normalizes | None = None


def routing_facts(model: Model) -> RoutingFacts | None:
    """What the routing of the last layer is; ``None`` for a network without capsules.

    Example:
        >>> import torchcaps
        >>> from torchcaps.studio.routing_facts import routing_facts
        >>> facts = routing_facts(torchcaps.create_model("matrix-capsules", A=4, B=2, C=2, D=2))
        >>> facts.name, facts.iterations, facts.scores
        ('em', 2, 'activations')
    """
    if not isinstance(model, CapsuleModel):
        return None
    layer: Any = getattr(model, "classes", None)
    routing = getattr(layer, "routing", None)
    bias = getattr(layer, "bias", None) is not None
    if isinstance(routing, RoutingAlgorithm):
        return RoutingFacts(
            name=routing.name,
            iterations=routing.settings.get("iterations"),
            leaky=bool(getattr(routing, "leaky", False)),
            bias=bias,
            scores="lengths" if routing.squashes else "activations",
            normalizes=cast(Normalizes, routing.normalizes),
        )
    return RoutingFacts(name=getattr(routing, "__name__", None), leaky=False, bias=bias, scores="lengths")
