"""Trained weights that come with the package, by name: no download, no connection."""

from __future__ import annotations

import os
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path
from typing import Any, TypedDict

from torchcaps._foreign import read_json_table
from torchcaps.errors import TorchcapsError
from torchcaps.ranges import Count, Percent, check_values

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


class _Card(TypedDict):
    """What is read of a card."""

    architecture: str
    parameters: Count
    data: str
    recipe: str
    error_percent: Percent
    errors_stored: Count
    examples: Count


def read_card(folder: Path) -> dict[str, Any] | None:
    """What ``card.json`` of a folder of weights states; nothing where it is missing or damaged."""
    try:
        card = read_json_table(folder / "card.json")
        check_values(_Card, card)
    except (TorchcapsError, ValueError):
        return None
    return card if _Card.__required_keys__ <= card.keys() else None


def _places() -> list[Path]:
    own = [Path(part).expanduser() for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    return [*own, weights_folder()]
