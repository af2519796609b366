"""Checkpoints: a folder each, complete or not there at all, without pickle.

``step-00001234/`` holds ``config.json`` and ``model.safetensors``, which ``torchcaps.from_pretrained`` reads, and
``training.safetensors`` with ``training.json``: optimiser, average of the weights, sums of the log, loader position.
Random numbers need no state of their own: they follow from the seed and the step.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from torchcaps.errors import TorchcapsError
from torchcaps.models import Model

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "all_checkpoints",
    "last_checkpoint",
    "load_checkpoint",
    "save_checkpoint",
    "save_model",
]

FORMAT = 1
LAST = "last"


class CheckpointError(TorchcapsError):
    """A checkpoint that cannot be written or read, or does not belong to the run."""


@dataclass(frozen=True)
class Checkpoint:
    """What was read back: weights, training tensors by name, and plain values."""

    path: Path
    weights: dict[str, Tensor]
    tensors: dict[str, Tensor]
    values: dict[str, Any]


def save_checkpoint(
    folder: Path, step: int, model: Model, tensors: Mapping[str, Tensor], values: Mapping[str, Any], keep: int
) -> Path:
    """Write ``folder/step-XXXXXXXX`` in one move, point ``last`` at it and remove all but the newest ``keep``."""
    target = folder / f"step-{step:08d}"

    def write(scratch: Path) -> None:
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(plain, scratch / "training.safetensors")
        text = json.dumps({"format": FORMAT, "step": step, **values}, indent=2)
        (scratch / "training.json").write_text(text, encoding="utf-8")

    save_model(target, model, write)
    _point_last_at(folder, target)
    for old in all_checkpoints(folder)[:-keep]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def save_model(target: Path, model: Model, write_more: Callable[[Path], None] | None = None) -> None:
    """``model.save_pretrained`` into a folder that appears complete or not at all; an older one is replaced."""
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=".saving-"))
        model.save_pretrained(scratch)
        if write_more is not None:
            write_more(scratch)
        (scratch / "README.md").unlink(missing_ok=True)  # a card for the hub, which this is not on
        for file in scratch.iterdir():
            file.chmod(0o644)  # temporary files and folders are private, results are not
            _sync(file)
        scratch.chmod(0o755)
        _sync(scratch)
        if target.exists():
            os.replace(target, old := scratch.with_suffix(".old"))
            os.replace(scratch, target)
            shutil.rmtree(old)
        else:
            os.replace(scratch, target)
        _sync(target.parent)
    except (OSError, SafetensorError) as error:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
        what = "the disk is full" if full else f"it cannot be written ({error})"
        raise CheckpointError(
            f"{target} was not saved: {what}. Checkpoints written before are untouched. Make room, or make the folder "
            "writable, and go on with --resume"
        ) from error
    except BaseException:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        raise


def last_checkpoint(folder: Path) -> Path | None:
    """The newest complete checkpoint of a run's ``checkpoints`` folder."""
    found = all_checkpoints(folder)
    return found[-1] if found else None


def load_checkpoint(path: Path, model: Model) -> Checkpoint:
    """Read a checkpoint that was written for such a model, or say what is wrong with it."""
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        values = json.loads((path / "training.json").read_text(encoding="utf-8"))
        if not isinstance(config, dict) or not isinstance(values, dict):
            raise ValueError("config.json and training.json must each hold a table")
        weights = load_file(path / "model.safetensors")
        tensors = load_file(path / "training.safetensors")
    except (OSError, ValueError, SafetensorError) as error:
        others = [other.name for other in all_checkpoints(path.parent) if other != path]
        advice = (
            f"Remove that folder to go on from {others[-1]}" if others else "There is no older one; start a new run"
        )
        raise CheckpointError(f"the checkpoint {path} is damaged or not complete ({error}). {advice}") from error
    if values.get("format") != FORMAT:
        raise CheckpointError(f"{path} has the format {values.get('format')!r}, this version reads {FORMAT}")
    _check_architecture(path, config, model)
    expected, found = model.state_dict(), weights
    different = [name for name in expected if name not in found or found[name].shape != expected[name].shape]
    if different:
        raise CheckpointError(f"the weights in {path} do not fit the model: {', '.join(different[:3])} differ")
    return Checkpoint(path, weights, tensors, values)


def _check_architecture(path: Path, config: Mapping[str, Any], model: Model) -> None:
    wanted = json.loads(json.dumps({"architecture": model.architecture, **model.settings}))
    for key, value in wanted.items():
        if config.get(key) != value:
            raise CheckpointError(
                f"the checkpoint {path} is of another network: {key} is {config.get(key)!r} there and {value!r} in "
                "this recipe. Resume with the recipe of that run, or start a new run with another --name"
            )


def all_checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints of a run's ``checkpoints`` folder, from first to last."""
    numbered = {path: path.name.removeprefix("step-") for path in folder.glob("step-*")}
    found = [
        path for path, number in numbered.items() if number.isdecimal() and path.is_dir() and not path.is_symlink()
    ]
    return sorted(found, key=lambda path: int(numbered[path]))  # names have at least eight digits, and may have more


def _point_last_at(folder: Path, target: Path) -> None:
    link = folder / f".{LAST}-{os.getpid()}"
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(target.name, target_is_directory=True)
        os.replace(link, folder / LAST)
    except OSError:  # a file system without links: the newest step is found by its number
        link.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
