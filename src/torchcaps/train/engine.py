"""The loop: steps, records, held-out error, checkpoints, and a clean stop."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torchcaps.data.source import Source
from torchcaps.errors import DataError, TorchcapsError
from torchcaps.models import Model, create_model
from torchcaps.train.capture import StepRunner, wants_compile
from torchcaps.train.checkpoint import last_checkpoint, save_checkpoint, save_model, save_snapshot
from torchcaps.train.distributed import World
from torchcaps.train.ema import WeightAverage
from torchcaps.train.feed import Feed, steps_of, steps_per_epoch
from torchcaps.train.guard import check_loss, weights_are_finite
from torchcaps.train.interrupt import StopRequest
from torchcaps.train.keeping import COMPLETE, is_early
from torchcaps.train.log import LogSink, ProgressSink
from torchcaps.train.objective import Objective
from torchcaps.train.recipe import Recipe, RecipeError
from torchcaps.train.run_folder import RunFolder, RunFolderError
from torchcaps.train.schedule import learning_rate
from torchcaps.train.state import TrainingState
from torchcaps.train.step import METER, TrainingStep, make_optimizer
from torchcaps.train.tensorboard import TensorBoardLog
from torchcaps.train.validate import count_held_out_errors

__all__ = ["Engine", "build_model"]

STEPS_BETWEEN_LOOKS_AT_SIGNALS = {"cuda": 10}  # with several processes, asking all of them waits for the device


@dataclass(frozen=True)
class Periods:
    """Steps between events; what a recipe leaves at 0 happens once an epoch."""

    record: int
    validate: int
    checkpoint: int
    pictures: int


class Engine:
    """One run in one process: model, optimiser and data on a device, and the loop over them."""

    def __init__(self, recipe: Recipe, source: Source, folder: RunFolder, world: World) -> None:
        self.recipe, self.folder, self.world = recipe, folder, world
        device = world.device
        channels_last = device.type == "cuda"
        # What others hold on the device, such as libraries since a run before this one, is not this run's memory.
        self._memory_of_others = torch.cuda.memory_allocated(device) if device.type == "cuda" else 0
        self.feed = Feed.build(recipe, source, world, channels_last)
        self.total_steps = steps_of(recipe, self.feed)
        self.precision = choose_precision(recipe.training.precision, device)
        self.model = build_model(recipe, self.feed).to(device)
        if channels_last:
            self.model.to(memory_format=torch.channels_last)
        self.average = WeightAverage(self.model, recipe.training.ema) if recipe.training.ema else None
        self.optimizer = make_optimizer(recipe.optimizer, self.model, device)
        self.done = 0
        self.sinks: list[LogSink] = []
        self.progress: ProgressSink | None = None
        self.tensorboard: TensorBoardLog | None = None
        self.last_record: dict[str, Any] = {}
        self.seconds = 0.0  # of training, over all processes that took part one after the other
        epoch = steps_per_epoch(self.feed)
        log = recipe.log
        self.periods = Periods(
            log.every, log.validate_every or epoch, log.checkpoint_every or epoch, log.pictures_every or epoch
        )
        objective = Objective(self.model, self.precision).to(device)  # the loss has tensors of its own
        self.step = TrainingStep(
            world.wrap(objective),
            self.optimizer,
            self.feed,
            self.average,
            recipe.optimizer,
            recipe.seed,
            world.rank,
            objective.set_progress,
        )
        self.state = TrainingState(self.model, self.optimizer, self.average, self.step.meter)
        # Each process counts every step, but only its own examples; a checkpoint holds a step once, for any number.
        times = [1 if name in ("wrong", "examples") else world.size for name in METER]
        self._times_counted = torch.tensor(times, device=device)
        self._mark, self._mark_step = 0.0, 0  # when the steps since the last record began
        self._reached_accuracy = False
        self._keeps_early_steps = log.keep > COMPLETE

    @property
    def weights_to_evaluate(self) -> Model:
        """The average of the weights where the recipe keeps one, else the last weights."""
        return self.model if self.average is None else self.average.model

    def resume(self) -> None:
        """Go on from the newest checkpoint; without one, from the start."""
        path = last_checkpoint(self.folder.checkpoints)
        if path is None:
            self.folder.check_unfinished()
            return
        checkpoint = self.state.restore(path)
        try:
            self.feed.loader.load_state_dict(checkpoint.values["loader"])
        except DataError as error:  # the recipe is the same, so it is the number of pictures
            raise RunFolderError(self.folder.data_has_changed("an epoch has another length")) from error
        self.step.meter.mul_(self._times_counted)
        if not self.world.is_main:
            self.step.meter.zero_()  # what all had counted goes on in one process
        self.done = int(checkpoint.values["step"])
        if checkpoint.values.get("reached_accuracy"):
            self.total_steps = self.done
        self.seconds = float(checkpoint.values["seconds"])
        if self.done > self.total_steps:
            raise RecipeError(
                f"the run has {self.done} steps behind it already, more than the {self.total_steps} asked"
            )

    def run(self, stop: StopRequest) -> None:
        """Train from where the run stands to its end; ``final/`` then holds the weights to evaluate."""
        left = self.total_steps - self.done
        compiled = wants_compile(self.recipe.training, self.world.device, left)
        if self.world.device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # every batch has the same shape, so the search pays
            torch.cuda.reset_peak_memory_stats(self.world.device)  # of a run before this one
        runner = StepRunner(self.step, self.recipe.training, self.world, compiled, self._note)
        try:
            self._train(runner, stop)
        finally:
            runner.release()
        if self.world.is_main:
            save_model(self.folder.final, self.weights_to_evaluate)
        self.world.wait()

    def _train(self, runner: StepRunner, stop: StopRequest) -> None:
        self.model.train()
        saved = self.done
        look = STEPS_BETWEEN_LOOKS_AT_SIGNALS.get(self.world.device.type, 1) if self.world.size > 1 else 1
        if self.tensorboard is not None and self.done == 0:
            self.tensorboard.show_graph(self.model, self._first_batch().images)
        self._mark, self._mark_step = time.perf_counter(), self.done
        while self.done < self.total_steps:
            rate = learning_rate(self.recipe.schedule, self.recipe.optimizer.lr, self.done, self.total_steps)
            self.step.prepare(self.done, rate, progress=self.done / self.total_steps)
            runner.run()
            self.done += 1
            last = self.done == self.total_steps
            if self.done % self.periods.record == 0 or last:
                self._record(runner.mode)
            if self.progress is not None:
                self.progress.step(self.done)
            if self.feed.validation_count and (self.done % self.periods.validate == 0 or last):
                self._validate()
                if self._finish_early() and not last:
                    last = True
                    if self._mark_step != self.done:
                        self._record(runner.mode)
            if self.tensorboard is not None and (self.done % self.periods.pictures == 0 or last):
                with self._off_the_clock():
                    self.tensorboard.show(self.weights_to_evaluate, self._first_batch(), self.done)
            if self.done % self.periods.checkpoint == 0 or last:
                self._save()
                saved = self.done
            elif self._keeps_early_steps and self.done < self.periods.checkpoint and is_early(self.done):
                self._save_snapshot()
            if self.done % look == 0 and self.world.anyone(bool(stop)) and not last:
                if saved != self.done:
                    self._save()
                raise stop.error(f"stopped at step {self.done} of {self.total_steps} and saved")

    def _record(self, mode: str) -> None:
        """Read the sums from the device (the only place that waits for it), check them, write them down."""
        sums = dict(zip(METER, self.world.summed(self.step.meter).tolist(), strict=True))
        self.step.meter.zero_()
        steps = sums["steps"]
        now = time.perf_counter()
        elapsed, self._mark = now - self._mark, now
        taken, self._mark_step = self.done - self._mark_step, self.done
        self.seconds += elapsed
        loader = self.feed.loader
        record = {
            "kind": "train",
            "step": self.done,
            "epoch": round(self.done * loader.batch_size / loader.epoch_length, 4),
            "loss": sums["loss"] / steps,
            "margin": sums["margin"] / steps,
            "reconstruction": sums["reconstruction"] / steps,
            "error": sums["wrong"] / sums["examples"],
            "lr": float(self.optimizer.param_groups[0]["lr"]),
            "images_per_second": round(taken * loader.batch_size / elapsed, 1),
            "step_ms": round(1000 * elapsed / taken, 3),
            "seconds": round(self.seconds, 3),
            "mode": mode,
        }
        if self.world.device.type == "cuda":
            peak = torch.cuda.max_memory_allocated(self.world.device)
            record["peak_memory_bytes"] = peak - self._memory_of_others
        check_loss(record["loss"], self.done, self.recipe, last_checkpoint(self.folder.checkpoints))
        self._write(record)
        self.last_record = record

    def _validate(self) -> None:
        if not self.world.is_main:
            return
        with self._off_the_clock():
            wrong = count_held_out_errors(self.weights_to_evaluate, self.feed, self.precision)
        count = self.feed.validation_count
        wanted = self.recipe.training.stop_at_accuracy
        self._reached_accuracy = bool(wanted) and (count - wrong) / count >= wanted
        self._write({"kind": "validation", "step": self.done, "error": wrong / count, "examples": count})

    def _finish_early(self) -> bool:
        """Make this step the last one where the wanted accuracy was reached; all processes agree on it."""
        if not self.recipe.training.stop_at_accuracy or not self.world.anyone(self._reached_accuracy):
            return False
        self._reached_accuracy, self.total_steps = True, self.done
        return True

    def _checked_meter(self) -> Tensor:
        """The sums over all processes, which all stop or none where weights are no numbers: those are never saved."""
        meter = self.world.summed(self.step.meter)
        loss = float(meter[0]) if weights_are_finite(self.model) else math.nan
        check_loss(loss, self.done, self.recipe, last_checkpoint(self.folder.checkpoints))
        return meter

    def _save_snapshot(self) -> None:
        """Weights of one of the first steps, to look at."""
        self._checked_meter()
        if self.world.is_main:
            with self._off_the_clock():
                save_snapshot(self.folder.checkpoints, self.done, self.model, self.recipe.log.keep)

    def _save(self) -> None:
        meter = self._checked_meter()
        if not self.world.is_main:
            return
        self.feed.loader.step = self.done
        seconds = self.seconds + time.perf_counter() - self._mark
        values = {
            "loader": self.feed.loader.state_dict(),
            "seconds": seconds,
            "seed": self.recipe.seed,
            "reached_accuracy": self._reached_accuracy,
        }
        with self._off_the_clock():
            tensors, keep = {**self.state.tensors(), "meter": meter / self._times_counted}, self.recipe.log.keep
            save_checkpoint(self.folder.checkpoints, self.done, self.model, tensors, values, keep)

    @contextmanager
    def _off_the_clock(self) -> Iterator[None]:
        """Work that is no training: images a second do not count it."""
        if self.world.device.type == "cuda":
            torch.cuda.synchronize(self.world.device)  # the steps before it belong to training
        start = time.perf_counter()
        yield
        self._mark += time.perf_counter() - start

    def _first_batch(self) -> Any:
        """Training examples to show, the same in every picture."""
        step = torch.zeros((), dtype=torch.int64, device=self.world.device)
        self.feed.loader.prepare(0)
        example = self.feed.batch(step)
        return type(example)(*(part[:32] for part in example))

    def _note(self, text: str) -> None:
        self._write({"kind": "note", "step": self.done, "text": text})

    def _write(self, record: dict[str, Any]) -> None:
        for sink in self.sinks:
            sink.write(record)


def build_model(recipe: Recipe, feed: Feed) -> Model:
    """The recipe's network for these pictures, its start values drawn from the seed on the CPU: equal everywhere."""
    torch.manual_seed(recipe.seed)
    settings = {"image_shape": feed.image_shape, "num_classes": len(feed.classes), **recipe.model.settings}
    try:
        return create_model(recipe.model.name, **settings)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"the recipe's [model] cannot be built: {error}") from error


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """float32, or bfloat16 for autocast; ``"auto"`` takes bfloat16 on a GPU that computes in it."""
    if name == "auto":
        name = "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "fp32"
    if name == "bf16" and not torch.amp.is_autocast_available(device.type):
        raise TorchcapsError(f"bf16 is not available on {device.type}; set training.precision=fp32")
    return torch.bfloat16 if name == "bf16" else torch.float32
