"""The routing function under test, called in one way whatever its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["Subject"]


class Subject:
    """Calls ``routing(votes)`` with only those keywords that it knows."""

    def __init__(self, routing: Callable[..., Any]) -> None:
        self.routing = routing
        wrapped = getattr(routing, "func", routing)  # functools.partial
        self.name = str(getattr(wrapped, "__name__", type(routing).__name__))
        try:
            parameters = inspect.signature(routing).parameters.values()
        except ValueError:  # a builtin without a signature
            parameters = ()  # type: ignore[assignment]
        self.keywords = {p.name for p in parameters}
        self.any_keyword = any(p.kind is p.VAR_KEYWORD for p in parameters)

    def knows(self, keyword: str) -> bool:
        return self.any_keyword or keyword in self.keywords

    def __call__(self, votes: Tensor, **keywords: Any) -> Tensor:
        result = self.routing(votes, **keywords)
        if isinstance(result, tuple):
            result = result[0]
        if not isinstance(result, Tensor):
            raise TypeError(f"{self.name} must return a tensor [B, J, D], got {type(result).__name__}")
        return result
