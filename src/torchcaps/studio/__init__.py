"""The studio: an HTTP server and a page to look inside a capsule network; ``pip install "torchcaps[studio]"``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchcaps.studio.app import create_app
    from torchcaps.studio.catalogue import Catalogue
    from torchcaps.studio.export import export_site
    from torchcaps.studio.server import serve

__all__ = ["Catalogue", "create_app", "export_site", "serve"]

# Loaded on first use: parts of the studio (the picture transformations, say) are of use without a web server.
_HOME = {"Catalogue": "catalogue", "create_app": "app", "export_site": "export", "serve": "server"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"torchcaps.studio.{_HOME[name]}"), name)
    raise AttributeError(f"module 'torchcaps.studio' has no attribute {name!r}")
