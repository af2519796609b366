"""Libraries that only some data needs; asked for when used, with a word on how to get them."""

from __future__ import annotations

import importlib
from typing import Any

from torchcaps.errors import DataError

__all__ = ["matlab_io", "pillow_image"]


def pillow_image() -> Any:
    """``PIL.Image``, which decodes and writes pictures."""
    return _optional("PIL.Image", "Pillow", "images", "reading or writing pictures")


def matlab_io() -> Any:
    """``scipy.io``, which reads MATLAB files."""
    return _optional("scipy.io", "SciPy", "matlab", "reading .mat files")


def _optional(module: str, library: str, extra: str, purpose: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise DataError(f'{purpose} needs {library}; install it with: pip install "torchcaps[{extra}]"') from error
