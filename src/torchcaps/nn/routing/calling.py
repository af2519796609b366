"""Between a layer and its routing: from what the user gave to an object, and from a call to its output."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from torchcaps import ops
from torchcaps.nn.routing.base import LayerSizes, RoutingAlgorithm
from torchcaps.nn.routing.registry import create_routing
from torchcaps.ops import RoutingOutput
from torchcaps.ops.routing.options import RoutingOptions

__all__ = ["hidden_routing", "reset_routing", "route", "routing_for_layer", "takes", "takes_bias"]


def routing_for_layer(
    routing: str | Mapping[str, Any] | Callable[..., Any], sizes: LayerSizes, options: RoutingOptions
) -> Callable[..., Any]:
    """The routing that a layer calls: built from a name or a name with settings, or the object or function itself."""
    if isinstance(routing, str | Mapping):
        inherited = {"iterations": options.iterations, "leaky": options.leaky, "gradient": options.gradient}
        return create_routing(routing, sizes, inherited)
    if not callable(routing) or isinstance(routing, type):
        raise TypeError(
            f"routing must be a name, a name with settings, a routing object or a function on votes, got {routing!r}"
        )
    return routing


def hidden_routing(routing: Any) -> Any:
    """The same routing for a layer below others, without parameters that only a last layer's activations need.

    An object is copied, so that each layer learns its own parameters.
    """
    if isinstance(routing, nn.Module):
        return copy.deepcopy(routing)
    settings = dict(routing) if isinstance(routing, Mapping) else {"name": routing}
    return {"presence": False, **settings} if settings.get("name") == "inverted-attention" else routing


def reset_routing(routing: Any) -> None:
    """Draw new start values where a routing has any."""
    if isinstance(routing, RoutingAlgorithm):
        routing.reset_parameters()


def takes(routing: Callable[..., Any], keyword: str) -> bool:
    """Whether a user's function, or module, can be called with this keyword."""
    try:
        parameters = inspect.signature(routing.forward if isinstance(routing, nn.Module) else routing).parameters
    except ValueError:  # a builtin without a signature
        return False
    return keyword in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def takes_bias(routing: Callable[..., Any]) -> bool:
    return routing.takes_bias if isinstance(routing, RoutingAlgorithm) else takes(routing, "bias")


def route(
    routing: Callable[..., Any],
    votes: Tensor,
    lower: Tensor,
    activations: Tensor | None,
    mask: Tensor | None,
    bias: Tensor | None,
    return_trace: bool,
) -> RoutingOutput:
    """Call a routing object with what it asks for, or a user's function with what it must know.

    Shape:
        votes: ``[B, I, J, D]``. lower: ``[B, I, P]``. activations, mask: ``[B, I]``. bias: ``[J, D]``.
    """
    if isinstance(routing, RoutingAlgorithm):
        if routing.uses_activations and activations is None:
            activations = ops.capsule_lengths(lower)
        return routing(
            votes,
            activations=activations if routing.uses_activations else None,
            mask=mask,
            bias=bias if routing.takes_bias else None,
            lower=lower if routing.uses_lower else None,
            return_trace=return_trace,
        )
    optional: dict[str, Any] = {"bias": bias, "mask": mask, "return_trace": return_trace or None}
    given = {name: value for name, value in optional.items() if value is not None}
    for name in given:
        if not takes(routing, name):
            raise TypeError(f"the routing {getattr(routing, '__name__', routing)} must take {name}= for this call")
    result = routing(votes, **given)
    if isinstance(result, RoutingOutput):
        return result
    parts = result if isinstance(result, tuple) else (result,)  # capsules first, a trace last
    capsules, trace = parts[0], parts[-1] if return_trace else None
    B, _, J, D = votes.shape
    if tuple(capsules.shape) != (B, J, D):
        raise ValueError(
            f"the routing must give capsules [B, J, D] = [{B}, {J}, {D}], got {list(capsules.shape)}; "
            "torchcaps.testing.check_routing says what is wrong with it"
        )
    return RoutingOutput(capsules, ops.capsule_lengths(capsules), trace)
