"""The folder that a run leaves behind: what was asked, with what it was made, what happened."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from torchcaps._foreign import read_json_table
from torchcaps._run_files import checkpoint_folders, log_lines, noted_classes
from torchcaps._version import __version__
from torchcaps.errors import TorchcapsError
from torchcaps.eval.output import disk_errors_explained
from torchcaps.ranges import Whole
from torchcaps.train.distributed import World
from torchcaps.train.keeping import is_early
from torchcaps.train.recipe import Recipe
from torchcaps.train.recipe_files import load_recipe, save_recipe
from torchcaps.train.tables import differing_keys

__all__ = ["RunFolder", "RunFolderError"]

RECIPE, ENVIRONMENT, METRICS = "recipe.toml", "environment.json", "metrics.jsonl"
LIBRARIES = ("torch", "numpy", "einops", "safetensors", "huggingface_hub", "triton", "tensorboard")


class RunFolderError(TorchcapsError):
    """A run folder that cannot be used for what was asked."""


class RunFolder:
    """Paths of one run. :meth:`start` makes a new one, :meth:`go_on` takes up an old one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.final = path / "final"
        self.metrics = path / METRICS
        self.tensorboard = path / "tensorboard"

    @property
    def holds_a_run(self) -> bool:
        return (self.path / RECIPE).exists()

    def check_free(self) -> None:
        """Raise when another run lies here already."""
        if self.holds_a_run:
            raise RunFolderError(
                f"{self.path} already holds a run. Add --resume to go on with it, or choose a new place with --name "
                "or --run-dir"
            )

    def start(self, recipe: Recipe, world: World, data: dict[str, Any]) -> None:
        """Claim the folder for a new run and write what it is made with."""
        self.check_free()
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            (self.path / ENVIRONMENT).write_text(
                json.dumps(environment(recipe, world, data), indent=2) + "\n", encoding="utf-8"
            )
            self.metrics.touch()
            self.write_recipe(recipe)  # last: a folder holds a run when its recipe is there
        except OSError as error:
            raise RunFolderError(
                f"the run folder {self.path} cannot be written: {error.strerror or error}. Choose another place with "
                "--run-dir, or make it writable"
            ) from error

    def write_recipe(self, recipe: Recipe) -> None:
        """Put the resolved recipe in place in one move."""
        scratch = self.path / f".{RECIPE}"  # a fixed name: what a kill leaves is written over
        scratch.write_text(save_recipe(recipe), encoding="utf-8")
        os.replace(scratch, self.path / RECIPE)

    def go_on(self, recipe: Recipe) -> None:
        """Check that this folder holds a run of the same recipe; its length and its log may change."""
        if not self.holds_a_run:
            raise RunFolderError(f"{self.path} holds no run to resume; leave --resume out to start one there")
        if not os.access(self.path, os.W_OK):
            raise RunFolderError(f"the run folder {self.path} cannot be written; make it writable to resume")
        saved = load_recipe(self.path / RECIPE)
        free = ("log.", "training.steps", "training.epochs", "training.compile", "training.capture", "description")
        different = [key for key in differing_keys(saved, recipe) if not key.startswith(free)]
        if different:
            raise RunFolderError(
                f"the run in {self.path} was made with another recipe ({', '.join(different)} changed), so it cannot "
                "be resumed with this one. Give the same recipe, overrides and seed, or a new --name"
            )

    def check_unfinished(self) -> None:
        """Raise when the run got further than its first steps: trained anew, it would write over weights and log."""
        if self.final.exists():
            raise RunFolderError(
                f"the run in {self.path} is finished and its checkpoints are gone, so it cannot go on; start a new run "
                "with a new --name"
            )

        later = [step for step in checkpoint_folders(self.checkpoints) if not is_early(step)]
        if later:
            raise RunFolderError(
                f"the checkpoints in {self.checkpoints} have no training.json and training.safetensors, so the run "
                f"cannot go on from step {later[-1]}; start a new run with a new --name"
            )

    def check_data(self, classes: Sequence[str], pictures: int) -> None:
        """Raise when the classes, or how many pictures there are to train on, are not those the run began with."""
        saved = self._data_facts()
        changes = []
        before, count = noted_classes(saved), saved.get("training_pictures")
        if before is not None and before != tuple(classes):
            changes.append(f"the classes were {', '.join(before)} and are {', '.join(classes)}")
        if Whole(0).holds(count) and count != pictures:
            changes.append(f"there were {count:,} training pictures and are {pictures:,}")
        if changes:
            raise RunFolderError(self.data_has_changed("; ".join(changes)))

    def data_has_changed(self, how: str) -> str:
        """What to say, and what to do, when the data is not what the run began with."""
        return (
            f"the data has changed since the run in {self.path} began: {how}. So it cannot be resumed: bring the data "
            "back as it was, or start a new run with a new --name"
        )

    def _data_facts(self) -> dict[str, Any]:
        """What the run noted about its data when it began; nothing where that cannot be read."""
        try:
            data = read_json_table(self.path / ENVIRONMENT).get("data")
        except TorchcapsError:
            return {}
        return data if isinstance(data, dict) else {}

    def forget_after(self, step: int) -> None:
        """Drop the lines of the log that a resumed run will write again, and those that are damaged."""
        if not self.metrics.exists():
            return
        scratch = self.path / f".{METRICS}"
        with disk_errors_explained(self.metrics, None):
            with scratch.open("wb") as kept:
                for line, record in log_lines(self.metrics):
                    if record is not None and record["step"] <= step and line.endswith(b"\n"):
                        kept.write(line)
            os.replace(scratch, self.metrics)

    def remove_leftovers(self) -> None:
        """Half-written folders and links of a process that was killed."""
        for leftover in (*self.checkpoints.glob(".saving-*"), *self.path.glob(".saving-*")):
            leftover.unlink() if leftover.is_symlink() else shutil.rmtree(leftover, ignore_errors=True)


def environment(recipe: Recipe, world: World, data: dict[str, Any]) -> dict[str, Any]:
    """Everything besides the recipe that a reader needs to get the same numbers again."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    cuda = world.device.type == "cuda"
    return {
        "torchcaps": __version__,
        "code": code_version(),
        "python": platform.python_version(),
        "platform": f"{platform.system()}-{platform.machine()}",  # a kernel's name is the machine's own business
        "libraries": versions,
        "device": torch.cuda.get_device_name(world.device) if cuda else f"{world.device.type}, {os.cpu_count()} cores",
        "cuda": torch.version.cuda if cuda else None,
        "threads": torch.get_num_threads(),
        "processes": world.size,
        "seed": recipe.seed,
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "data": data,
    }


def code_version() -> str | None:
    """The commit of the source tree, with "+changes" when it was edited; nothing for an installed package."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    try:
        commit = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
        changes = subprocess.run(
            ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no", "src"],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+changes" if changes else "")
