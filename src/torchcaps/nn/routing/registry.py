"""Routing algorithms by name."""

from __future__ import annotations

import dataclasses
import difflib
import inspect
from collections.abc import Callable, Mapping
from fnmatch import fnmatch
from typing import Any, TypeVar

from torchcaps._foreign import shown
from torchcaps.nn.routing.base import LayerSizes, RoutingAlgorithm
from torchcaps.ranges import check_values

__all__ = ["create_routing", "list_routings", "register_routing", "routing_class", "routing_config"]

_ROUTINGS: dict[str, type[RoutingAlgorithm]] = {}
R = TypeVar("R", bound="type[RoutingAlgorithm]")


def register_routing(name: str) -> Callable[[R], R]:
    """Class decorator that makes a routing known to layers and models under ``name``."""

    def register(routing: R) -> R:
        if name in _ROUTINGS:
            raise ValueError(f"a routing named {name!r} exists already ({_ROUTINGS[name].__name__}); choose another")
        routing.name = name
        _ROUTINGS[name] = routing
        return routing

    return register


def list_routings(pattern: str = "*") -> list[str]:
    """Names of the routings that match a pattern such as ``"*attention"``.

    Example:
        >>> import torchcaps
        >>> torchcaps.list_routings("*attention")
        ['attention', 'inverted-attention', 'self-attention']
    """
    return sorted(name for name in _ROUTINGS if fnmatch(name, pattern))


def routing_class(name: str) -> type[RoutingAlgorithm]:
    """The class of this name, or an error that lists the names."""
    if name not in _ROUTINGS:
        raise ValueError(
            f"unknown routing {name!r}; choose from {', '.join(map(repr, list_routings()))}, or pass a routing object "
            "or a function on votes [B, I, J, D]"
        )
    return _ROUTINGS[name]


def create_routing(
    routing: str | Mapping[str, Any], sizes: LayerSizes, defaults: Mapping[str, Any] | None = None
) -> RoutingAlgorithm:
    """Build a routing for a layer of these sizes from its name, or from its name and settings.

    Args:
        routing: ``"em"``, or ``{"name": "em", "iterations": 2}``.
        defaults: settings of the layer that are taken where the algorithm knows them and none are given.

    Example:
        >>> from torchcaps import nn
        >>> nn.create_routing({"name": "k-means", "temperature": 5.0}, nn.LayerSizes(7, 3, 8, 16))
        KMeansRouting(iterations=3, distance='euclidean', temperature=5.0, squash='paper')
    """
    settings = dict(routing) if isinstance(routing, Mapping) else {"name": routing}
    name = settings.pop("name", None)
    if not isinstance(name, str):
        raise ValueError(f"a routing with settings needs its name, as in {{'name': 'em'}}; got {routing!r}")
    kind = routing_class(name)
    sizes_too = {field.name for field in dataclasses.fields(LayerSizes)}
    known = inspect.signature(kind.__init__).parameters.keys() - {"self", *sizes_too}
    for key in settings:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(sorted(known)) or 'none'}"
            raise TypeError(f"the routing {name!r} has no setting {shown(key)}; {hint}")
    check_values(kind.__init__, settings, f"the routing {name!r}: ")
    inherited = {key: value for key, value in (defaults or {}).items() if key in known}
    return kind.for_layer(sizes, **{**inherited, **settings})


def routing_config(routing: Any) -> Any:
    """What a saved model's config.json holds for this routing: a name, or name and settings, or the thing itself."""
    # A class derived from a registered one inherits its name, but is something else.
    if isinstance(routing, RoutingAlgorithm) and _ROUTINGS.get(routing.name) is type(routing):
        return routing.config()
    return dict(routing) if isinstance(routing, Mapping) else routing
