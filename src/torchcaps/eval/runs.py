"""Open what a training left behind: a run folder, one of its checkpoints, or a model folder alone."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchcaps._foreign import read_json_table, read_toml_table
from torchcaps._run_files import checkpoint_folders, log_lines, noted_classes
from torchcaps.errors import TorchcapsError
from torchcaps.models import Model, from_pretrained
from torchcaps.models.shipped import list_pretrained, shipped_folder
from torchcaps.ranges import MOST_SIDE, Many, Whole

__all__ = ["Run", "load_model", "open_run"]

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A trained model and what is known about how it came to be; everything but the model may be missing.

    Attributes:
        folder: as the user named it.
        model_folder: holds ``config.json`` and ``model.safetensors``; a hub name where no folder is.
        recipe: the resolved recipe. facts: versions, device, seed, data. lines: ``metrics.jsonl`` in order.
    """

    folder: Path
    model_folder: str
    recipe: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def title(self) -> str:
        """What to call the model in print: the folder that holds it, or the name by which it was asked for."""
        return self.model_folder if self.folder.exists() else str(self.folder)

    @property
    def seed(self) -> int | None:
        seed = self.facts.get("seed", self.recipe.get("seed"))
        return seed if Whole().holds(seed) else None

    @property
    def class_names(self) -> tuple[str, ...] | None:
        """Names of the classes, as the data set had them when the run began."""
        return noted_classes(self.data_facts)

    @property
    def any_number_of_classes(self) -> bool:
        """Whether a picture of the data could show several classes, or none."""
        return self.data_facts.get("any_number_of_classes") is True

    @property
    def read_as(self) -> tuple[int, int] | None:
        """Height and width of the training pictures before the recipe cropped or placed them."""
        shape = self.data_facts.get("read_as")
        if shape is None or not Many(Whole(1, MOST_SIDE), 3, 3).holds(shape):
            return None
        return shape[1], shape[2]

    @property
    def data_facts(self) -> Mapping[str, Any]:
        """What the run noted about its data when it began."""
        data = self.facts.get("data")
        return data if isinstance(data, Mapping) else {}

    @property
    def training_lines(self) -> list[Line]:
        """Records of training, in the order of the steps: ``loss``, ``error`` (a share) and so on."""
        return _by_step([line for line in self.lines if line.get("kind") == "train" and "loss" in line])

    @property
    def validation_lines(self) -> list[Line]:
        """Records of the held-out error, a share."""
        return _by_step([line for line in self.lines if line.get("kind") == "validation" and "error" in line])


def open_run(path: str | Path) -> Run:
    """Find the model under a path and read what lies beside it.

    A run folder gives its ``final`` model, or the newest checkpoint while there is none. A checkpoint or ``final`` of a
    run brings the run's recipe and metrics with it. A name of ``torchcaps.list_pretrained()`` gives shipped weights,
    and one such as ``owner/name`` is looked up on the hub.
    """
    named = folder = Path(path).expanduser()
    if not folder.exists():
        folder = shipped_folder(path) or folder
    if folder.is_file():
        raise TorchcapsError(f"{folder} is a file; give the folder that holds config.json and model.safetensors")
    if not folder.is_dir():
        if str(path).count("/") == 1 and not folder.is_absolute() and not folder.parent.is_dir():
            return Run(Path(str(path)), str(path))
        raise TorchcapsError(
            f"there is no folder {folder}{_hint(folder)} Give a run folder of `torchcaps train`, a folder that "
            f"save_pretrained wrote, shipped weights ({', '.join(list_pretrained()) or 'none here'}) or a hub name "
            "such as owner/name"
        )
    model_folder = _model_folder(folder)
    home = next((place for place in (folder, folder.parent, folder.parent.parent) if _is_run(place)), folder)
    return Run(
        named,
        str(model_folder),
        recipe=read_toml_table(recipe) if (recipe := home / "recipe.toml").exists() else {},
        facts=read_json_table(facts) if (facts := home / "environment.json").exists() else {},
        lines=_whole_lines(home / "metrics.jsonl"),
    )


def load_model(run: Run | str | Path) -> Model:
    """The network of a run, in evaluation mode."""
    return from_pretrained((run if isinstance(run, Run) else open_run(run)).model_folder).eval()


def _hint(folder: Path) -> str:
    """What was probably meant: shipped weights, or a folder beside; and the end of the sentence."""
    beside = folder.parent.glob("*/") if folder.parent.is_dir() else ()
    near = difflib.get_close_matches(str(folder), [*list_pretrained(), *map(str, beside)], n=1, cutoff=0.7)
    return f"; did you mean {near[0]}?" if near else "."


def _model_folder(folder: Path) -> Path:
    if (folder / "config.json").is_file():
        return folder
    if (folder / "final" / "config.json").is_file():
        return folder / "final"
    for checkpoint in reversed(checkpoint_folders(folder / "checkpoints").values()):
        if (checkpoint / "config.json").is_file():
            return checkpoint
    raise TorchcapsError(
        f"{folder} holds no model: expected config.json and model.safetensors in it, in {folder.name}/final or in "
        f"{folder.name}/checkpoints/step-*; give the folder of a run that has saved at least once"
    )


def _is_run(folder: Path) -> bool:
    return (folder / "recipe.toml").is_file() or (folder / "metrics.jsonl").is_file()


def _whole_lines(file: Path) -> tuple[Line, ...]:
    """A run that is writing, or was killed, may leave half a line at the end."""
    return tuple(record for _, record in log_lines(file) if record is not None) if file.exists() else ()


def _by_step(lines: list[Line]) -> list[Line]:
    latest = {line["step"]: line for line in lines}
    return [latest[step] for step in sorted(latest)]
