"""Run a study piece by piece: every run once, each resumed where the last call's time ended."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree

import torch

from torchcaps.data import Source
from torchcaps.errors import TorchcapsError
from torchcaps.eval import Ensemble
from torchcaps.eval.output import check_writable
from torchcaps.models import Model, from_pretrained
from torchcaps.train.checkpoint import all_checkpoints
from torchcaps.train.distributed import choose_device
from torchcaps.train.feed import load_source
from torchcaps.train.fit import fit
from torchcaps.train.guard import NonFiniteError
from torchcaps.train.interrupt import OutOfTimeError
from torchcaps.train.log import read_log
from torchcaps.train.recipe import Recipe
from torchcaps.train.run_folder import RunFolder
from torchcaps.train.studies.definition import Cell, Study
from torchcaps.train.studies.earlier_runs import check_same_settings, check_weights
from torchcaps.train.studies.ensembles import joined_result, missing_members
from torchcaps.train.studies.protocols import PROTOCOLS, Measured, Task
from torchcaps.train.studies.results import RESULT, StudyResult, run_path

__all__ = ["StudyOptions", "run_study"]

RUNS_BETWEEN_RESETS = 6
LEAST_SHARE = 0.05  # of the budget; with less left no new piece of work is begun, since a run must first compile
SECONDS_BETWEEN_LINES = 10.0


@dataclass(frozen=True)
class StudyOptions:
    """How a study is run; none of it changes what is measured but ``changes``, ``scale`` and ``limit``.

    Attributes:
        out: the folder of the study; a run lies in ``out/CELL/seedN``.
        cells: patterns; all cells without one.
        seeds: N, for 0 … N − 1 of each cell, or these alone; the study's own number without it.
        budget: seconds for this call; without it, until all is done.
        changes, scale: laid over every recipe; its length, and the decay and warm-up of the rate, times ``scale``.
        limit: the most examples of a test set that is made (pairs, affine copies), evenly spaced; all without it.
        measure_again: finished runs, too, with the weights that they have; to go from a ``limit`` to all examples.
        keep_checkpoints: else they are removed once a run is measured.
    """

    out: Path
    cells: Sequence[str] = ()
    seeds: int | Sequence[int] | None = None
    budget: float | None = None
    changes: Sequence[str] = ()
    scale: float = 1.0
    device: str = "auto"
    data_dir: Path | None = None
    limit: int | None = None
    measure_again: bool = False
    keep_checkpoints: bool = False
    progress: bool = True


def run_study(study: Study, options: StudyOptions, tell: Callable[[str], None] = print) -> bool:
    """Train and measure what is missing, the seeds of a cell one after the other; true when nothing is left.

    Within one process the data is read once, and what was compiled for a cell serves its other seeds. A run that failed
    is done; an ensemble that lacks members is left.
    """
    clock = _Clock(options.budget)
    runner = _Runner(study, options, clock, tell)
    cells = study.choose(options.cells)
    asked = study.seeds if options.seeds is None else options.seeds
    seeds = range(asked) if isinstance(asked, int) else asked
    plan = [
        (cell, study.recipe(cell, seed, options.changes, options.scale))
        for cell in cells
        for seed in (seeds if cell.members is None else (0,))
    ]
    for cell, recipe in plan:
        if cell.members is None and not runner.is_finished(cell, recipe):
            check_weights(RunFolder(run_path(options.out, cell.name, recipe.seed)))
        for part, seed in study.members(cell) or [(cell, recipe.seed)]:
            check_same_settings(RunFolder(run_path(options.out, part.name, seed)), replace(recipe, seed=seed))
    check_writable(options.out / RESULT)
    try:
        for cell in cells:
            for recipe in (recipe for other, recipe in plan if other is cell):
                if runner.is_finished(cell, recipe):
                    continue
                if clock.nearly_over:
                    raise OutOfTimeError
                if cell.members is None:
                    runner.run(cell, recipe)
                else:
                    runner.join(cell, recipe)
    except OutOfTimeError:
        left = sum(not runner.is_finished(cell, recipe) for cell, recipe in plan)
        tell(f"time is over: {len(plan) - left} of {len(plan)} runs are done; the same command goes on")
        return False
    return all(runner.is_finished(cell, recipe) for cell, recipe in plan)


class _Clock:
    def __init__(self, budget: float | None) -> None:
        self.budget = budget
        self._start = time.monotonic()

    @property
    def left(self) -> float | None:
        return None if self.budget is None else self.budget - (time.monotonic() - self._start)

    @property
    def nearly_over(self) -> bool:
        return self.left is not None and self.budget is not None and self.left < LEAST_SHARE * self.budget


class _Runner:
    """Trains and measures single runs of one study."""

    def __init__(self, study: Study, options: StudyOptions, clock: _Clock, tell: Callable[[str], None]) -> None:
        self.study, self.options, self.clock, self.tell = study, options, clock, tell
        self._sources: dict[tuple[object, ...], Source] = {}
        self._last_line = time.monotonic()
        self._runs = 0
        self._measured: set[Path] = set()  # in this call

    def is_finished(self, cell: Cell, recipe: Recipe) -> bool:
        path = self._path(cell, recipe)
        if not (path / RESULT).exists():
            return False
        failed = bool(StudyResult.read(path / RESULT).failure)  # there are no weights to measure again
        return failed or path in self._measured or not self.options.measure_again

    def run(self, cell: Cell, recipe: Recipe) -> None:
        """Train to the end, or until the time is over; then measure."""
        folder = RunFolder(self._path(cell, recipe))
        title = f"{cell.name}, seed {recipe.seed}"
        source = self._source(recipe)
        try:
            if not folder.final.exists():
                self.tell(f"{title}: {'goes on' if folder.holds_a_run else 'starts'}")
                fit(
                    recipe,
                    device=self.options.device,
                    run_dir=folder.path,
                    resume=folder.holds_a_run,
                    source=source,
                    progress=self.options.progress,
                    seconds=self.clock.left,
                )
            found = self._measure(cell, recipe, folder, source)
            self.tell(f"{title}: {found.error} on {found.data}, {found.split}")
        except NonFiniteError as error:
            reason = str(error).partition(". ")[0]  # what follows is advice to people
            self._failure(cell, recipe, folder, reason).write(folder.path)
            self.tell(f"{title}: failed, {error}")
            self._measured.add(folder.path)
        finally:
            _free_memory()
            self._runs += 1
            if self._runs % RUNS_BETWEEN_RESETS == 0:
                _forget_compiled_code()
        if not self.options.keep_checkpoints:
            rmtree(folder.checkpoints, ignore_errors=True)

    def _measure(self, cell: Cell, recipe: Recipe, folder: RunFolder, source: Source) -> StudyResult:
        model = from_pretrained(folder.final)
        measured = self._look(model, recipe, source, all_checkpoints(folder.checkpoints))
        extras = measured.counts
        held_out = _last_record(folder.metrics, "validation")
        if held_out:
            count = int(held_out["examples"])
            extras["held out"] = (round(held_out["error"] * count), count)
        last = _last_record(folder.metrics)
        if not last:
            raise TorchcapsError(
                f"{folder.metrics} does not say how long it was trained; remove that run to make it again"
            )
        found = StudyResult(
            cell=cell.name,
            seed=recipe.seed,
            split=self.study.split,
            data=measured.data,
            errors=measured.error.count,
            examples=measured.error.total,
            weights="averaged" if recipe.training.ema else "last",
            precision=measured.precision_name,
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            steps=int(last["step"]),
            epochs=float(last["epoch"]),
            training_seconds=float(last["seconds"]),
            extras=extras,
            couplings=measured.couplings,
            wrong=measured.wrong,
        )
        found.write(folder.path)
        self._measured.add(folder.path)
        return found

    def join(self, cell: Cell, recipe: Recipe) -> None:
        """Measure an ensemble once all its members are finished; else say what is missing and leave it."""
        runs = [run_path(self.options.out, part.name, seed) for part, seed in self.study.members(cell)]
        missing = missing_members(runs)
        if missing:
            self.tell(f"{cell.name}: skipped, it needs {len(runs)} finished runs; {', '.join(missing)}")
            return
        folder = self._path(cell, recipe)
        try:
            model = Ensemble([from_pretrained(RunFolder(run).final) for run in runs])
            measured = self._look(model, recipe, self._source(recipe))
        finally:
            _free_memory()
        found = joined_result(cell, self.study.split, measured, [StudyResult.read(run / RESULT) for run in runs])
        found.write(folder)
        self._measured.add(folder)
        self.tell(f"{cell.name}: {found.error} on {found.data}, {found.split}")

    def _look(self, model: Model, recipe: Recipe, source: Source, checkpoints: Sequence[Path] = ()) -> Measured:
        device = choose_device(self.options.device)
        task = Task(model, recipe, source, self.study.split, device, self.options.limit, self._watch, checkpoints)
        return PROTOCOLS[self.study.protocol](task)

    def _failure(self, cell: Cell, recipe: Recipe, folder: RunFolder, reason: str) -> StudyResult:
        last = _last_record(folder.metrics)
        return StudyResult(
            cell=cell.name,
            seed=recipe.seed,
            split=self.study.split,
            data=recipe.data.source,
            errors=0,
            examples=0,
            weights="none",
            precision="none",
            parameters=0,
            steps=int(last.get("step", 0)),
            epochs=float(last.get("epoch", 0)),
            training_seconds=float(last.get("seconds", 0)),
            failure=reason,
        )

    def _watch(self, done: int, total: int) -> None:
        if self.clock.left is not None and self.clock.left <= 0:
            raise OutOfTimeError
        if self.options.progress and time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self.tell(f"measured {done:,} of {total:,}")

    def _path(self, cell: Cell, recipe: Recipe) -> Path:
        return run_path(self.options.out, cell.name, recipe.seed)

    def _source(self, recipe: Recipe) -> Source:
        key = (recipe.data.source, recipe.data.size, recipe.data.channels)
        if key not in self._sources:
            self._sources[key] = load_source(recipe, self.options.data_dir)
        return self._sources[key]


def _last_record(metrics: Path, kind: str = "train") -> dict[str, float]:
    """Where training ended, by its log."""
    return next(reversed(read_log(metrics, kind)), {})


def _free_memory() -> None:
    """Networks, graphs and optimisers of the last run hold each other in circles."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _forget_compiled_code() -> None:
    """The compiler gives up on a function after eight variants: one a seed of the batch, one a network of the step."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()
