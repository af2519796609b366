"""Trained weights that come with the package, by name: no download, no connection."""

from __future__ import annotations

import json
import os
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path
from typing import Any

__all__ = ["VARIABLE", "list_pretrained", "read_card", "shipped_folder", "weights_folder"]

VARIABLE = "TORCHCAPS_WEIGHTS"


def weights_folder() -> Path:
    """Where the package keeps its weights, one folder a network."""
    return Path(str(resources.files("torchcaps").joinpath("weights")))


def list_pretrained(pattern: str = "*") -> list[str]:
    """Names that :func:`torchcaps.from_pretrained` loads from the installed package.

    Folders named in the environment variable ``TORCHCAPS_WEIGHTS`` (several are joined as in ``PATH``) are looked at
    first.
    """
    names = {file.parent.name for place in _places() for file in place.glob("*/config.json")}
    return sorted(name for name in names if fnmatch(name, pattern))


def shipped_folder(name: str | Path) -> Path | None:
    """The folder of the weights of this name, if there are any."""
    if "/" in str(name) or str(name) not in list_pretrained():
        return None
    return next(place / name for place in _places() if (place / name / "config.json").is_file())


def read_card(folder: Path) -> dict[str, Any] | None:
    """What ``card.json`` of a folder of weights states; nothing where it is missing or damaged."""
    try:
        card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return card if isinstance(card, dict) and "error_percent" in card else None


def _places() -> list[Path]:
    own = [Path(part).expanduser() for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    return [*own, weights_folder()]
