"""``optimizer.lr=2e-3`` on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchcaps._foreign import parse_toml, shortened
from torchcaps.train.recipe import RecipeError

__all__ = ["check_one_length", "parse_overrides"]

ONE_LENGTH = {"steps": "epochs", "epochs": "steps"}


def parse_overrides(texts: Iterable[str]) -> dict[str, Any]:
    """Nested tables from ``key=value`` texts; a value is TOML, or plain text where it is no TOML.

    >>> parse_overrides(["optimizer.lr=2e-3", "data.source=folder:my/pictures"])
    {'optimizer': {'lr': 0.002}, 'data': {'source': 'folder:my/pictures'}}
    """
    table: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise RecipeError(f"{shortened(text)} is not of the form key=value; write for example optimizer.lr=2e-3")
        if len(parts) > 2:
            raise RecipeError(
                f"{shortened(key)} has too many dots; a recipe has sections and keys, for example optimizer.lr"
            )
        place = table
        for part in parts[:-1]:
            place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise RecipeError(f"{shortened(key)} and another override contradict each other")
        place[parts[-1]] = _value(value.strip())
        if parts[0] == "training" and parts[-1] in ONE_LENGTH and place[parts[-1]] != 0:  # the last word counts
            place.pop(ONE_LENGTH[parts[-1]], None)
    return table


def check_one_length(texts: Iterable[str]) -> None:
    """Raise when one call asks for a number of steps and for a number of epochs.

    Overrides laid over others, as those of a study are, may replace the one by the other; one call should not.
    """
    asked: dict[str, str] = {}
    for text in texts:
        key, _, value = (part.strip() for part in text.partition("="))
        if key in ("training.steps", "training.epochs"):
            asked[key] = value
    given = [f"{key}={value}" for key, value in asked.items() if _value(value) != 0]
    if len(given) > 1:
        raise RecipeError(f"{' and '.join(given)} are both given, but a run has one length; leave one of them out")


def _value(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text
