"""Full precision where errors are counted: a GPU may otherwise round what a convolution multiplies to 10 bits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["full_precision"]


@contextmanager
def full_precision() -> Iterator[None]:
    """Within it, convolutions on a GPU compute in float32 itself and not in TF32, so that a CPU counts the same."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before
