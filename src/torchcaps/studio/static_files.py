"""The page's files, read once: what is served by name later cannot be anything else on the disk."""

from __future__ import annotations

import mimetypes
from importlib import resources
from importlib.resources.abc import Traversable

__all__ = ["MISSING_PAGE", "page_files"]

KINDS = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
MISSING_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>torchcaps studio</title>"
    "<p>The page is not built here. Build it from <code>studio-web</code>; the interface is described at "
    "<a href=api/openapi.json>api/openapi.json</a>.</p></html>"
)


def page_files() -> dict[str, tuple[bytes, str]]:
    """Contents and media type by path below ``/``, for example ``"app.js"``."""
    files: dict[str, tuple[bytes, str]] = {}
    folder = resources.files("torchcaps.studio").joinpath("static")
    if folder.is_dir():
        _collect(folder, "", files)
    files.setdefault("index.html", (MISSING_PAGE.encode(), "text/html; charset=utf-8"))
    return files


def _collect(folder: Traversable, prefix: str, files: dict[str, tuple[bytes, str]]) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            _collect(entry, f"{prefix}{entry.name}/", files)
            continue
        suffix = "." + entry.name.rpartition(".")[2]
        kind = KINDS.get(suffix) or mimetypes.guess_type(entry.name)[0] or "application/octet-stream"
        text = kind.startswith("text/") or suffix == ".svg"
        files[prefix + entry.name] = (entry.read_bytes(), f"{kind}; charset=utf-8" if text else kind)
