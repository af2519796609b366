"""Which implementation of ``capsule_linear`` runs, and why."""

from __future__ import annotations

import os

from torch import Tensor

__all__ = ["BACKENDS", "ENVIRONMENT_VARIABLE", "choose_backend", "explain_backend"]

BACKENDS = {
    "naive": "loops in float64, the ground truth; slow",
    "eager": "batched matrix products in plain PyTorch",
}
ENVIRONMENT_VARIABLE = "TORCHCAPS_BACKEND"


def choose_backend(requested: str, u: Tensor) -> tuple[str, str]:
    """Name of the backend for this input, and the reason in words."""
    if requested not in ("auto", *BACKENDS):
        raise ValueError(f"unknown backend {requested!r}; choose from 'auto', {', '.join(map(repr, BACKENDS))}")
    if requested != "auto":
        return requested, "the call asked for it"
    forced = os.environ.get(ENVIRONMENT_VARIABLE, "auto")
    if forced not in ("auto", *BACKENDS):
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE}={forced!r} names no backend; set it to 'auto' or one of {', '.join(BACKENDS)}"
        )
    if forced != "auto":
        return forced, f"{ENVIRONMENT_VARIABLE}={forced} forces it"
    return "eager", f"the fastest that runs on {u.device.type}"


def explain_backend(u: Tensor, backend: str = "auto") -> str:
    """Say in one line which backend ``capsule_linear`` takes for this input and why.

    Example:
        >>> import torch, torchcaps
        >>> torchcaps.explain_backend(torch.zeros(2, 1152, 8), backend="naive")
        'naive (loops in float64, the ground truth; slow): the call asked for it'
    """
    name, reason = choose_backend(backend, u)
    return f"{name} ({BACKENDS[name]}): {reason}"
