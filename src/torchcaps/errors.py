"""Errors whose message alone tells the user what to do; the command line shows them without a traceback."""

from __future__ import annotations

__all__ = ["DataError", "TorchcapsError"]


class TorchcapsError(Exception):
    """A problem that the user can solve; the message says what was expected, what came and what to do."""


class DataError(TorchcapsError):
    """Data that is missing, damaged or of the wrong form."""
