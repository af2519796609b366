"""Look at a network without changing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["evaluation_mode"]


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Within it the network is in evaluation mode; afterwards each layer is in the mode it was in."""
    modes = [(layer, layer.training) for layer in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training
