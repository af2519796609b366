"""What an earlier run in a folder of a study must be for its work to go on there; said before hours of work."""

from __future__ import annotations

from torchcaps.errors import TorchcapsError
from torchcaps.train.recipe import Recipe
from torchcaps.train.recipe_files import load_recipe
from torchcaps.train.run_folder import RECIPE, RunFolder
from torchcaps.train.studies.results import RESULT
from torchcaps.train.tables import differing_keys

__all__ = ["check_same_settings", "check_weights"]

FREE = ("log.", "training.compile", "training.capture", "description")


def check_same_settings(folder: RunFolder, recipe: Recipe) -> None:
    """Refuse to mix seeds of different settings, lengths included."""
    if not folder.holds_a_run:
        return
    saved = load_recipe(folder.path / RECIPE)
    different = [key for key in differing_keys(saved, recipe) if not key.startswith(FREE)]
    if recipe.training.stop_at_accuracy and saved.log.validate_every != recipe.log.validate_every:
        different.append("log.validate_every")  # when a run looks decides where it stops
    if different:
        raise TorchcapsError(
            f"{folder.path} holds a run with other settings ({', '.join(different)} changed); give the same --set "
            "and --scale as before, or another --out"
        )


def check_weights(folder: RunFolder) -> None:
    """Refuse to measure again what has a result but no weights: it would be trained again."""
    if (folder.path / RESULT).exists() and not folder.final.exists():
        raise TorchcapsError(
            f"{folder.path} has no weights to measure again, as records have none; leave --measure-again out, or "
            "name the folder of the runs with --out"
        )
