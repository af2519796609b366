"""Exceptions that a reader may raise on a damaged input; any other one is a finding."""

from __future__ import annotations

from torchcaps.errors import TorchcapsError

__all__ = ["allowed"]

EVERYWHERE: tuple[type[Exception], ...] = (TorchcapsError,)
DOCUMENTED: dict[str, tuple[type[Exception], ...]] = {}  # name of a target → what its public function documents


def allowed(target: str) -> tuple[type[Exception], ...]:
    return EVERYWHERE + DOCUMENTED.get(target, ())
