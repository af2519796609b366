"""Capsule networks for PyTorch."""

from torchcaps import ops
from torchcaps._version import __version__
from torchcaps.ops import explain_backend

__all__ = ["__version__", "explain_backend", "ops"]
