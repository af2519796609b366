"""What the runs of a study were told beyond its own recipes, by their saved ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchcaps.train.recipe import TrainingSection
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.results import saved_recipes
from torchcaps.train.tables import flatten, recipe_to_table

__all__ = ["other_lengths", "overridden_keys"]

HARMLESS = ("name", "description", "seed", "log.", "training.compile", "training.capture")
BY_SCALE = ("training.epochs", "training.steps", "schedule.decay_steps", "schedule.warmup_steps")


def overridden_keys(study: Study, root: Path) -> list[str]:
    """Keys whose values in some run below a folder are not those of its cell; :func:`other_lengths` has the length.

    A saved recipe holds every key that was set; one that it lacks has the default of its time.
    """
    keys: set[str] = set()
    for cell in study.cells:
        for _, saved in saved_recipes(root, cell.name):
            own = flatten(recipe_to_table(study.recipe(cell, saved.get("seed", 0))))
            keys |= {
                key for key, value in flatten(saved).items() if own.get(key) != value and _counts(key, own.get(key))
            }
    return sorted(keys)


def other_lengths(study: Study, root: Path) -> dict[str, list[str]]:
    """The cells whose runs are longer or shorter than the study says, by how many times; ``["all rows"]`` for all."""
    found: dict[str, list[str]] = {}
    for cell in study.cells:
        own, trained = study.recipe(cell, 0).training, cell.members.cell if cell.members else cell.name
        times = {f"{_times(saved.get('training', {}), own):.3g}" for _, saved in saved_recipes(root, trained)}
        for factor in sorted(times):
            found.setdefault(factor, []).append(cell.name)
    if len(found) == 1:
        found = {factor: ["all rows"] for factor in found}
    return {factor: cells for factor, cells in found.items() if factor != "1"}


def _times(saved: Mapping[str, Any], own: TrainingSection) -> float:
    steps, epochs = saved.get("steps", 0), saved.get("epochs", own.epochs)
    if bool(steps) != bool(own.steps):  # that is a key of its own
        return 1.0
    return float(steps / own.steps if steps else epochs / own.epochs)


def _counts(key: str, own: object) -> bool:
    if key in BY_SCALE:
        return key.startswith("training.") and not own  # a scale never turns epochs into steps, nor steps into epochs
    return not key.startswith(HARMLESS)
