"""``fit``: from a recipe to a finished run folder, in one call."""

from __future__ import annotations

import dataclasses
import shlex
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchcaps.data.source import Source
from torchcaps.models import Model, from_pretrained
from torchcaps.train.checkpoint import remove_folder, tidy_up
from torchcaps.train.distributed import joined_world
from torchcaps.train.engine import Engine
from torchcaps.train.feed import load_source
from torchcaps.train.interrupt import StopRequest, stop_on_signals
from torchcaps.train.log import JsonLines, make_progress
from torchcaps.train.overrides import check_one_length
from torchcaps.train.recipe import Recipe
from torchcaps.train.recipe_files import changed_recipe, load_recipe
from torchcaps.train.run_folder import RunFolder
from torchcaps.train.tensorboard import open_tensorboard

__all__ = ["RunResult", "default_run_dir", "fit"]


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Attributes:
        folder: the run folder.
        final: the folder with the weights to evaluate, for ``torchcaps.from_pretrained``.
        steps: how many steps the run has.
        seconds: time spent in training steps, without validation and saving.
        record: the last record of the log: loss, error on the training batches, images a second.
    """

    folder: Path
    final: Path
    steps: int
    seconds: float
    record: dict[str, Any]

    def load_model(self) -> Model:
        """The trained network, ready to evaluate."""
        model: Model = from_pretrained(self.final).eval()
        return model


def default_run_dir(recipe: Recipe, name: str | None = None) -> Path:
    """``runs/NAME``; the name is that of the recipe and the seed unless one is given."""
    return Path("runs") / (name or f"{recipe.name}-seed{recipe.seed}")


def fit(
    recipe: Recipe | str | Path,
    overrides: Iterable[str] = (),
    *,
    seed: int | None = None,
    device: str = "auto",
    run_dir: Path | str | None = None,
    resume: bool = False,
    data_dir: Path | str | None = None,
    source: Source | None = None,
    progress: bool = True,
    seconds: float | None = None,
) -> RunResult:
    """Train by a recipe and leave a run folder behind.

    Under ``torchrun`` every process calls it with the same arguments; the first one writes.

    Args:
        recipe: a :class:`Recipe`, the name of a shipped one or a TOML file; ``overrides`` as on the command line.
        seed: in place of the recipe's.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``.
        run_dir: where to; ``runs/RECIPE-seedN`` unless told.
        resume: go on with the run in that folder, from its last checkpoint; exact on the CPU.
        data_dir: folder to look for the data in.
        source: data already in memory, in place of what ``data.source`` names. Its test split is not read.
        progress: show a bar, or lines where there is no terminal.
        seconds: how long the call may take; a run that is not done by then is saved and can be resumed.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM, once the run is saved.
        OutOfTimeError: after ``seconds``, once the run is saved; a kind of KeyboardInterrupt, too.

    Example:
        >>> from torchcaps import train
        >>> result = train.fit("demo", ["training.steps=2", "log.tensorboard=off"], progress=False)
        >>> result.steps, sorted(path.name for path in result.final.glob("*.safetensors"))
        (2, ['model.safetensors'])
    """
    stop = StopRequest(seconds)
    overrides = tuple(overrides)
    check_one_length(overrides)
    recipe = changed_recipe(recipe, overrides) if isinstance(recipe, Recipe) else load_recipe(recipe, overrides)
    if seed is not None:
        recipe = dataclasses.replace(recipe, seed=seed)
    folder = RunFolder(default_run_dir(recipe) if run_dir is None else Path(run_dir))
    with joined_world(device) as world:
        if resume:
            folder.go_on(recipe)
        else:  # said at once, not after the data has been read
            folder.check_free()
        world.wait()  # nobody starts the run before all have looked
        source = source or load_source(recipe, data_dir)
        if resume:
            folder.check_data(source.classes, len(source.train))
        if world.is_main:
            _warn_of_data(source)
        engine = Engine(recipe, source, folder, world)
        if resume:
            engine.resume()
        elif world.is_main:
            folder.start(recipe, world, _describe(source, engine))
        world.wait()
        try:
            if world.is_main:
                _open_logs(engine, resume, progress)
            with stop_on_signals(stop):
                engine.run(stop)
        finally:
            for sink in engine.sinks:
                sink.close()
    return RunResult(folder.path, folder.final, engine.done, engine.seconds, engine.last_record)


def _open_logs(engine: Engine, resume: bool, progress: bool) -> None:
    folder = engine.folder
    if resume:
        folder.remove_leftovers()
        folder.forget_after(engine.done)
        if engine.done:
            tidy_up(folder.checkpoints, engine.done, engine.recipe.log.keep)
        if engine.done < engine.total_steps:
            remove_folder(folder.final)  # of the shorter run, which this one no longer is
        folder.write_recipe(engine.recipe)  # its length may be another one now
    engine.sinks.append(JsonLines(folder.metrics))
    if resume:
        engine.sinks[0].write({"kind": "resumed", "step": engine.done, "device": str(engine.world.device)})
    engine.tensorboard = open_tensorboard(engine.recipe.log, folder.tensorboard, engine.done)
    if engine.tensorboard is not None:
        engine.sinks.append(engine.tensorboard)
    if progress:
        engine.progress = make_progress(engine.total_steps, engine.done, engine.recipe.name)
        engine.sinks.append(engine.progress)


def _warn_of_data(source: Source) -> None:
    """What people should know of their own data before hours are spent on it."""
    look = f"torchcaps data info {shlex.quote(source.name)}"
    if source.skipped:
        warnings.warn(f"{len(source.skipped):,} files or folders were skipped; {look} names them", stacklevel=3)
    for remark in source.repeats.remarks:
        warnings.warn(f"{remark}. {look} names all", stacklevel=3)


def _describe(source: Source, engine: Engine) -> dict[str, Any]:
    return {
        "name": source.name,
        "origin": source.origin,
        "split_rule": source.split_rule,
        "is_sample": source.is_sample,
        "read_as": list(source.train.images.shape[1:]),  # before the augmentation crops or places it
        "image_shape": list(engine.feed.image_shape),
        "classes": list(source.classes),
        "any_number_of_classes": source.train.labels.ndim == 2,
        "training_pictures": len(source.train),
        "steps": engine.total_steps,
        "steps_per_epoch": engine.feed.loader.epoch_length / engine.feed.loader.batch_size,
        "validation_examples": engine.feed.validation_count,
    }
