"""What autocast asks for, for ops that it does not know, and how to keep it out of them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

__all__ = ["at_least_float32", "autocast_dtype", "product_dtype", "with_product_dtype", "without_autocast"]

AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps")  # asking torch for others is a call that compilers cannot trace
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def at_least_float32(x: Tensor) -> Tensor:
    """Half precision as float32; float64 stays."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def autocast_dtype(device: str) -> torch.dtype | None:
    """What autocast gives to matrix products on a device of this type; ``None`` outside autocast."""
    if device in AUTOCAST_DEVICES and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return None


def product_dtype(x: Tensor, weight: Tensor) -> torch.dtype:
    """Autocast's, except for float64, which it leaves alone; outside autocast the wider of the two."""
    own = torch.promote_types(x.dtype, weight.dtype)
    return own if own == torch.float64 else autocast_dtype(x.device.type) or own


def with_product_dtype(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Both in the dtype of their product."""
    dtype = product_dtype(x, weight)
    return x.to(dtype), weight.to(dtype)


def without_autocast(op: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorator: an op chooses its precision itself; only its arguments come in that of autocast."""

    @functools.wraps(op)
    def wrapped(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        first = arguments[0] if arguments else next(iter(keywords.values()))
        device = first.device.type if isinstance(first, Tensor) else "cpu"
        on = autocast_dtype(device) is not None
        with torch.autocast(device, enabled=False) if on else contextlib.nullcontext():
            return op(*arguments, **keywords)

    return wrapped
