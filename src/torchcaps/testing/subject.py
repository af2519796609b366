"""The routing under test, called in one way whatever its signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchcaps.nn.routing import LayerSizes, RoutingAlgorithm
from torchcaps.nn.routing.calling import takes
from torchcaps.ops import RoutingTrace

__all__ = ["Subject"]


class Subject:
    """Calls ``routing(votes)`` with only those keywords that it knows.

    A routing object is built anew, from its settings and with start values that are always the same, for the sizes of
    the votes at hand; one that looks at the lower capsules gets the votes of each child in their place.
    """

    def __init__(self, routing: Callable[..., Any]) -> None:
        self.routing = routing
        self.algorithm = routing if isinstance(routing, RoutingAlgorithm) else None
        wrapped = getattr(routing, "func", routing)  # functools.partial
        self.name = str(getattr(wrapped, "__name__", type(routing).__name__))
        if self.algorithm is not None:
            self.name = self.algorithm.name or self.name

    def knows(self, keyword: str) -> bool:
        if self.algorithm is None:
            return takes(self.routing, keyword)
        return keyword in {"mask", "return_trace", *self.algorithm.settings}

    def __call__(self, votes: Tensor, **keywords: Any) -> Tensor:
        result = self._call(votes, **keywords)
        if isinstance(result, tuple):
            result = result[0]
        if not isinstance(result, Tensor):
            raise TypeError(f"{self.name} must return a tensor [B, J, D], got {type(result).__name__}")
        return result

    def trace(self, votes: Tensor) -> tuple[Tensor, RoutingTrace]:
        """Capsules, first in what the routing returns, and the trace, last in it."""
        result = self._call(votes, return_trace=True)
        return result[0], result[-1]

    def _call(self, votes: Tensor, **keywords: Any) -> Any:
        if self.algorithm is None:
            return self.routing(votes, **keywords)
        changed = {key: keywords.pop(key) for key in list(keywords) if key in self.algorithm.settings}
        lower = votes.flatten(2) if self.algorithm.uses_lower else None
        sizes = LayerSizes(None, votes.shape[2], votes.shape[2] * votes.shape[3], votes.shape[3], dtype=votes.dtype)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            routing = self.algorithm.for_layer(sizes, **{**self.algorithm.settings, **changed})
        if lower is not None and (mask := keywords.get("mask")) is not None:
            lower = lower.masked_fill(~mask.unsqueeze(2), 0)  # as a layer does
        return routing(votes, lower=lower, **keywords)
