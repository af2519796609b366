"""Checkpoints: a folder each, complete or not there at all, without pickle.

``step-00001234/`` holds ``config.json`` and ``model.safetensors``, which ``torchcaps.from_pretrained`` reads. Those to
resume from also have ``training.safetensors`` with ``training.json``: optimiser, average of the weights, sums of the
log, loader position. Older ones are there to look at, and cost a third without. Random numbers need no state of their
own: they follow from the seed and the step.
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
from typing import Annotated, Any, TypedDict

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from torchcaps._foreign import read_json_table, shown
from torchcaps._run_files import checkpoint_folders
from torchcaps.errors import TorchcapsError
from torchcaps.models import Model
from torchcaps.models.declared import check_weights
from torchcaps.ranges import Count, Number, Whole, check_values
from torchcaps.train.keeping import COMPLETE, steps_to_keep

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "all_checkpoints",
    "last_checkpoint",
    "load_checkpoint",
    "remove_folder",
    "save_checkpoint",
    "save_model",
    "save_snapshot",
    "tidy_up",
]

FORMAT = 1
LAST = "last"
VALUES, TENSORS = "training.json", "training.safetensors"
HIDDEN = ".saving-"  # how the name of what is being written or removed begins
SECONDS = Annotated[float, Number(0, 1e10)]


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
    """Write ``folder/step-XXXXXXXX`` in one move, point ``last`` at it and thin out those before to ``keep``."""

    def write(scratch: Path) -> None:
        plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(plain, scratch / TENSORS)
        text = json.dumps({"format": FORMAT, "step": step, **values}, indent=2)
        (scratch / VALUES).write_text(text, encoding="utf-8")

    target = _place(folder, step)
    save_model(target, model, write)
    tidy_up(folder, step, keep)
    return target


def tidy_up(folder: Path, step: int, keep: int) -> None:
    """What follows the move of a checkpoint of this step to its place; a run that was killed before does it later."""
    _point_last_at(folder, _place(folder, step))
    _thin_out(folder, step, keep)


def save_snapshot(folder: Path, step: int, model: Model, keep: int) -> Path:
    """The same without what a run needs to be resumed: weights to look at."""
    target = _place(folder, step)
    save_model(target, model)
    _thin_out(folder, step, keep)
    return target


def _place(folder: Path, step: int) -> Path:
    return folder / f"step-{step:08d}"


def _thin_out(folder: Path, step: int, keep: int) -> None:
    """Remove what a cut back run wrote after this step, and what is not to stay; only the newest can be resumed."""
    found = checkpoint_folders(folder)
    kept = steps_to_keep([other for other in found if other <= step], keep)
    for other in found.keys() - set(kept):
        remove_folder(found[other])
    complete = [other for other in kept if _is_complete(found[other])][-COMPLETE:]
    for other in set(kept) - set(complete):  # those half of which a kill has left, too
        for name in (VALUES, TENSORS):
            (found[other] / name).unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """In one move out of sight, so that a kill leaves no half of it."""
    hidden = folder.with_name(f"{HIDDEN}{folder.name}.old")
    try:
        shutil.rmtree(hidden, ignore_errors=True)
        os.replace(folder, hidden)
    except OSError:  # it stays one more time
        return
    shutil.rmtree(hidden, ignore_errors=True)


def _is_complete(checkpoint: Path) -> bool:
    return (checkpoint / VALUES).is_file() and (checkpoint / TENSORS).is_file()


def save_model(target: Path, model: Model, write_more: Callable[[Path], None] | None = None) -> None:
    """``model.save_pretrained`` into a folder that appears complete or not at all; an older one is replaced."""
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=HIDDEN))
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
    """The newest checkpoint of a run's ``checkpoints`` folder that the run can be resumed from."""
    found = _complete_checkpoints(folder)
    return found[-1] if found else None


def load_checkpoint(path: Path, model: Model, expected: Mapping[str, Tensor]) -> Checkpoint:
    """Read a checkpoint that was written for such a model, or say what is wrong with it.

    Every value is checked before it is used, and the sizes in the headers before memory is taken.

    Args:
        expected: tensors of the training state, whose names, shapes and types those of the checkpoint must have.
    """
    try:
        config, values = read_json_table(path / "config.json"), read_json_table(path / VALUES)
    except TorchcapsError as error:
        raise CheckpointError(_damaged(path, error)) from error
    if values.get("format") != FORMAT:
        raise CheckpointError(f"{path} has the format {shown(values.get('format'))}, this version reads {FORMAT}")
    _check_architecture(path, config, model)
    try:
        _check_values(path, values)
        weights = _load(path / "model.safetensors", model.state_dict())
        tensors = _load(path / TENSORS, expected)
    except (OSError, ValueError, SafetensorError) as error:
        raise CheckpointError(_damaged(path, error)) from error
    return Checkpoint(path, weights, tensors, values)


class _Values(TypedDict):
    """What ``training.json`` holds."""

    step: Count
    loader: Mapping[str, Any]
    seconds: SECONDS
    seed: Annotated[int, Whole(0)]
    reached_accuracy: bool


def _check_values(path: Path, values: Mapping[str, Any]) -> None:
    check_values(_Values, values, f"{VALUES}: ")
    missing = _Values.__annotations__.keys() - values.keys() - {"reached_accuracy"}
    if missing:
        raise ValueError(f"{VALUES} has no {', '.join(sorted(missing))}")
    loader, step = values["loader"], values["step"]
    if not isinstance(loader, dict) or loader.get("step") != step or _place(path.parent, step).name != path.name:
        raise ValueError(f"{VALUES} and the name of the folder do not name the same step")


def _load(file: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Finite tensors of these names, shapes and types."""
    try:
        check_weights(file, expected, exact=True)
    except ValueError as error:
        raise ValueError(f"{file.name} does not fit this run: {error}") from error
    tensors = load_file(file)
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ValueError(f"{name} in {file.name} has numbers that are not finite")
    return tensors


def _damaged(path: Path, error: Exception) -> str:
    others = [other.name for other in _complete_checkpoints(path.parent) if other.name < path.name]
    advice = f"Remove that folder to go on from {others[-1]}" if others else "There is no older one; start a new run"
    return f"the checkpoint {path} is damaged or not complete ({error}). {advice}"


def _check_architecture(path: Path, config: Mapping[str, Any], model: Model) -> None:
    wanted = json.loads(json.dumps({"architecture": model.architecture, **model.settings}))
    for key, value in wanted.items():
        if config.get(key) != value:
            raise CheckpointError(
                f"the checkpoint {path} is of another network: {key} is {shown(config.get(key))} there and {value!r} "
                "in this recipe. Resume with the recipe of that run, or start a new run with another --name"
            )


def all_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a run's ``checkpoints`` folder, from first to last, those to look at among them."""
    return list(checkpoint_folders(folder).values())


def _complete_checkpoints(folder: Path) -> list[Path]:
    return [path for path in all_checkpoints(folder) if _is_complete(path)]


def _point_last_at(folder: Path, target: Path) -> None:
    link = folder / f"{HIDDEN}{LAST}"  # a fixed name: what a kill leaves is written over
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
