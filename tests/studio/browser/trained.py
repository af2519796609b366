"""Networks that recognise digits, for tests that look at what a person would see."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from filelock import FileLock

from torchcaps.train import fit, load_recipe
from torchcaps.train.recipe import ModelSection

__all__ = ["trained_networks"]

CAPSNET_STEPS = 260  # enough for a drawn digit: 95 % of the test images; half a minute on one core
CNN_STEPS = 100


def trained_networks(folder: Path) -> tuple[Path, Path]:
    """Run folders of a small capsule network (with checkpoints) and a plain one; trained once, kept in ``folder``."""
    capsnet, cnn = folder / "demo", folder / "small-cnn"
    with FileLock(folder / "lock"):
        if not (capsnet / "final").is_dir():
            changes = [
                f"training.steps={CAPSNET_STEPS}",
                "model.conv_channels=32",
                "log.checkpoint_every=100",  # those of the first steps stay, too
            ]
            fit(load_recipe("demo", changes), run_dir=capsnet)
        if not (cnn / "final").is_dir():
            recipe = load_recipe("demo", [f"training.steps={CNN_STEPS}"])
            model = ModelSection("small-cnn", {"channels": 16, "hidden": 128})
            fit(dataclasses.replace(recipe, model=model), run_dir=cnn)
    return capsnet, cnn
