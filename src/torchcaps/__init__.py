"""Capsule networks for PyTorch: ``ops`` (functions), ``nn`` (layers), ``models`` (networks), ``data``, ``testing``."""

import importlib
from typing import TYPE_CHECKING, Any

from torchcaps import nn, ops
from torchcaps._version import __version__
from torchcaps.ops import explain_backend

if TYPE_CHECKING:
    from torchcaps import data, models, testing
    from torchcaps.models import create_model, from_pretrained, list_models, register_model

__all__ = [
    "__version__",
    "create_model",
    "data",
    "explain_backend",
    "from_pretrained",
    "list_models",
    "models",
    "nn",
    "ops",
    "register_model",
    "testing",
]

# Loaded on first use, so that `import torchcaps` stays quick for those who only want a layer.
_LAZY = dict.fromkeys(("create_model", "from_pretrained", "list_models", "register_model"), "torchcaps.models")
_LAZY_PACKAGES = ("data", "models", "testing")


def __getattr__(name: str) -> Any:
    if name in _LAZY_PACKAGES:
        return importlib.import_module(f"torchcaps.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'torchcaps' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
