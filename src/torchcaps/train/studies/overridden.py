"""What the runs of a study were told beyond its own recipes, by their saved ones."""

from __future__ import annotations

from pathlib import Path

from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.results import saved_recipes
from torchcaps.train.tables import flatten, recipe_to_table

__all__ = ["overridden_keys"]

HARMLESS = ("name", "description", "seed", "log.", "training.compile", "training.capture")
BY_SCALE = ("training.epochs", "training.steps", "schedule.decay_steps", "schedule.warmup_steps")


def overridden_keys(study: Study, root: Path) -> list[str]:
    """Keys whose values in some run below a folder are not those of its cell; the length of a run is left out.

    A saved recipe holds every key that was set; one that it lacks has the default of its time.
    """
    keys: set[str] = set()
    for cell in study.cells:
        for _, saved in saved_recipes(root, cell.name):
            own = flatten(recipe_to_table(study.recipe(cell, 0)))
            keys |= {
                key for key, value in flatten(saved).items() if own.get(key) != value and _counts(key, own.get(key))
            }
    return sorted(keys)


def _counts(key: str, own: object) -> bool:
    if key in BY_SCALE:
        return key == "training.steps" and not own  # a scale never turns epochs into steps
    return not key.startswith(HARMLESS)
