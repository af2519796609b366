"""The precision that autocast asks for, for ops that it does not know."""

from __future__ import annotations

import torch

__all__ = ["autocast_dtype"]

AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps")  # asking torch for them is a call that compilers cannot trace


def autocast_dtype(device: str) -> torch.dtype | None:
    """What autocast gives to matrix products on a device of this type; ``None`` outside autocast."""
    if device in AUTOCAST_DEVICES and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return None
