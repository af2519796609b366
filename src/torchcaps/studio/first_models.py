"""A plain network for the studio to compare with: trained once on the embedded digits and kept in the cache."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

from torchcaps.data.locate import cache_folder
from torchcaps.train import fit, load_recipe
from torchcaps.train.recipe import ModelSection, Recipe

__all__ = ["compared_cnn", "studio_folder"]

CNN_STEPS = 400


def studio_folder() -> Path:
    """Where the studio keeps what it trained."""
    return cache_folder().parent / "studio"


def compared_cnn(say: Callable[[str], None], steps: int = CNN_STEPS) -> Path:
    """A plain convolutional network that learned from the same digits in the same way, to compare with."""
    recipe = load_recipe("demo", [f"training.steps={steps}"])
    model = ModelSection("small-cnn", {"channels": 16, "hidden": 128})
    return _trained("small-cnn", dataclasses.replace(recipe, model=model), "To compare with, a plain network", say)


def _trained(name: str, recipe: Recipe, what: str, say: Callable[[str], None]) -> Path:
    folder = studio_folder() / name
    if not (folder / "final" / "model.safetensors").is_file():
        if folder.exists():
            shutil.rmtree(folder)  # a training that did not come to its end
        say(f"{what} is trained now, once, on the embedded digits. It stays in {folder}")
        fit(dataclasses.replace(recipe, name=name), run_dir=folder)
    return folder
