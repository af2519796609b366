"""Which implementation of ``capsule_linear`` runs, and why."""

from __future__ import annotations

import os
import warnings

import torch
from torch import Tensor

from torchcaps.ops.routing.checks import inside_transform
from torchcaps.ops.routing.triton import supports

__all__ = ["BACKENDS", "ENVIRONMENT_VARIABLE", "choose_backend", "explain_backend", "forced_backend"]

BACKENDS = {
    "naive": "loops in float64, the ground truth; slow",
    "eager": "batched matrix products in plain PyTorch",
    "triton": "fused kernels that form no votes, for CUDA",
}
ENVIRONMENT_VARIABLE = "TORCHCAPS_BACKEND"

_warned: set[str] = set()


def forced_backend() -> str:
    """The backend that the environment asks for, or ``"auto"``."""
    forced = os.environ.get(ENVIRONMENT_VARIABLE, "auto")
    if forced not in ("auto", *BACKENDS):
        raise ValueError(
            f"{ENVIRONMENT_VARIABLE}={forced!r} names no backend; set it to 'auto' or one of {', '.join(BACKENDS)}"
        )
    return forced


def choose_backend(requested: str, u: Tensor, weight: Tensor | None = None) -> tuple[str, str]:
    """Name of the backend for this input, and the reason in words."""
    if requested not in ("auto", *BACKENDS):
        raise ValueError(f"unknown backend {requested!r}; choose from 'auto', {', '.join(map(repr, BACKENDS))}")
    if requested != "auto":
        return _able(requested, "the call asked for it", u, weight)
    forced = forced_backend()
    if forced != "auto":
        return _able(forced, f"{ENVIRONMENT_VARIABLE}={forced} forces it", u, weight)
    if inside_transform():
        return "eager", "torch.func is at work, which sees through plain PyTorch only"
    # float64 is asked for when exactness counts, so plain PyTorch is no surprise there.
    if u.is_cuda and u.dtype != torch.float64:
        return _able("triton", "the fastest that runs on cuda", u, weight)
    return "eager", f"the fastest that runs on {u.device.type}"


def explain_backend(u: Tensor, backend: str = "auto", weight: Tensor | None = None) -> str:
    """Say in one line which backend ``capsule_linear`` takes for this input and why.

    Without ``weight`` the answer leaves out whether J and D are small enough for the fused kernels.

    Example:
        >>> import torch, torchcaps
        >>> torchcaps.explain_backend(torch.zeros(2, 1152, 8), backend="naive")
        'naive (loops in float64, the ground truth; slow): the call asked for it'
    """
    name, reason = choose_backend(backend, u, weight)
    return f"{name} ({BACKENDS[name]}): {reason}"


def _able(name: str, reason: str, u: Tensor, weight: Tensor | None) -> tuple[str, str]:
    """The backend itself, or eager with one warning where the fused kernels cannot take the input."""
    if name != "triton":
        return name, reason
    able, why_not = supports(u, weight)
    if able:
        return name, reason
    if why_not not in _warned and not torch.compiler.is_compiling():
        _warned.add(why_not)
        warnings.warn(f"the fused routing cannot run, plain PyTorch does: {why_not}", stacklevel=4)
    return "eager", f"the fused kernels cannot take it: {why_not}"
