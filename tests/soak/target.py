"""What the soak needs to know of a reader."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Target"]


@dataclass(frozen=True)
class Target:
    """A reader of foreign bytes, with valid inputs to start from.

    Args:
        name: as ``--only`` takes it.
        seeds: makes the valid inputs by program, small ones; the folder is empty and is removed afterwards.
        read: hands one input to the reader; the folder is the worker's own, for readers that want a file.
        mutate: damages an input with knowledge of its format; half of the inputs are made so, half by bytes.
        share: of the inputs, relative to other targets; less for slow readers.
    """

    name: str
    seeds: Callable[[Path], list[bytes]]
    read: Callable[[bytes, Path], object]
    mutate: Callable[[random.Random, bytes], bytes] | None = None
    share: float = 1.0
