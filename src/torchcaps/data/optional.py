"""Libraries that only some data needs; asked for when used, with a word on how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from torchcaps.errors import DataError

__all__ = ["pillow_image"]


def pillow_image() -> Any:
    """``PIL.Image``, which decodes and writes pictures."""
    try:
        return importlib.import_module("PIL.Image")
    except ImportError as error:
        raise DataError(
            'reading or writing pictures needs Pillow; install it with: pip install "torchcaps[images]"'
        ) from error
