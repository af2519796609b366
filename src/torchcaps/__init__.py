"""Capsule networks for PyTorch: ``ops`` (functions), ``nn`` (layers), ``models`` (networks), ``data``, ``testing``."""

from typing import TYPE_CHECKING

from torchcaps._lazy import imported_on_demand
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
__getattr__, __dir__ = imported_on_demand(__name__, _HOME, __all__)
