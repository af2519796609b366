"""Capsule networks for PyTorch: ``ops`` (functions), ``nn`` (layers), ``models`` (networks), ``data``, ``testing``."""

import importlib
from typing import TYPE_CHECKING, Any

from torchcaps._version import __version__

if TYPE_CHECKING:
    from torchcaps import data, eval, models, nn, ops, testing, train
    from torchcaps.models import create_model, from_pretrained, list_models, list_pretrained, register_model
    from torchcaps.nn import list_routings, register_routing
    from torchcaps.ops import explain_backend

__all__ = [
    "__version__",
    "create_model",
    "data",
    "eval",
    "explain_backend",
    "from_pretrained",
    "list_models",
    "list_pretrained",
    "list_routings",
    "models",
    "nn",
    "ops",
    "register_model",
    "register_routing",
    "testing",
    "train",
]

# Loaded on first use: the command line must answer `--help` without waiting for torch.
_PACKAGES = ("data", "eval", "keras", "models", "nn", "ops", "studio", "testing", "train")  # keras is an optional extra
_HOME = {
    "create_model": "models",
    "explain_backend": "ops",
    "from_pretrained": "models",
    "list_models": "models",
    "list_pretrained": "models",
    "list_routings": "nn",
    "register_model": "models",
    "register_routing": "nn",
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"torchcaps.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"torchcaps.{_HOME[name]}"), name)
    raise AttributeError(f"module 'torchcaps' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
