"""How a finished run is measured, by the name that a study gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.data import AffineDigits, MovedDigits, Source
from torchcaps.data.window import to_unit_float
from torchcaps.errors import TorchcapsError
from torchcaps.eval import SWEEPS, LayerCoupling, Proportion, measure_couplings
from torchcaps.eval.evaluate import Watch
from torchcaps.eval.precision import full_precision
from torchcaps.models import CapsuleModel, Model, from_pretrained
from torchcaps.train.recipe import Recipe
from torchcaps.train.studies.measure import BATCH, SMALL_BATCH, Measurement, find_errors, measured_split, share_of

__all__ = ["AWAY_FROM_EDGE", "LAST_HALF", "LOWEST", "PROTOCOLS", "STEP", "TURNS", "Measured", "Task"]

AWAY_FROM_EDGE, MARGIN = "away from the edge", 4  # pixels: digits of 20×20 lie so in pictures of 28×28
AWAY_COPIES, SWEPT = 8, 5  # of each digit, and every so many-th digit: these explain the error, they are not it
TURNS = (15, 30, 45)  # degrees, to both sides
PICTURES_TRACED = 1000
STEP, LAST_HALF, LOWEST = "step ", "mean of the last half", "lowest checkpoint"


@dataclass(frozen=True)
class Task:
    """A model and what to measure it with.

    Attributes:
        limit: the most examples of a set that is made, such as pairs.
        checkpoints: those that its training left, from first to last.
    """

    model: Model
    recipe: Recipe
    source: Source
    split: str
    device: torch.device
    limit: int | None = None
    watch: Watch | None = None
    checkpoints: Sequence[Path] = ()


@dataclass(frozen=True)
class Measured:
    """The error that counts, on which data and in which precision; and what else was looked at.

    ``wrong`` are the positions of the wrong examples in their split, ``None`` for examples that are made of others.
    """

    data: str
    error: Proportion
    precision: torch.dtype = torch.float32
    extras: Mapping[str, Proportion] = field(default_factory=dict)
    couplings: Mapping[str, LayerCoupling] = field(default_factory=dict)
    wrong: tuple[int, ...] | None = None

    @property
    def precision_name(self) -> str:
        return "bf16" if self.precision == torch.bfloat16 else "fp32"

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """The extras as (errors, examples)."""
        return {name: (share.count, share.total) for name, share in self.extras.items()}


def whole_split(task: Task) -> Measured:
    """Every example of a split; of pairs made from it, all or so many."""
    measurement = Measurement(task.recipe, task.source, task.split, task.device, task.limit)
    wrong = measurement.errors(task.model, task.watch)
    return Measured(measurement.name, share_of(wrong), measurement.precision, wrong=measurement.positions(wrong))


def every_checkpoint(task: Task) -> Measured:
    """The last weights, whose error counts; and the checkpoints on the way to them, to see what a choice would do.

    Those of the first steps, which lie between what ``log.checkpoint_every`` asks for, are left out.
    """
    measurement = Measurement(task.recipe, task.source, task.split, task.device, task.limit)
    wrong = measurement.errors(task.model, task.watch)
    every = task.recipe.log.checkpoint_every
    found = {int(path.name.removeprefix("step-")): path for path in task.checkpoints}
    found = {step: path for step, path in found.items() if not every or step % every == 0 or step == max(found)}
    if not found:
        raise TorchcapsError(
            "the checkpoints of this run are gone, they are removed once they are measured; to measure them again, "
            "remove the run and train it with --keep-checkpoints"
        )
    shares = {step: share_of(measurement.errors(from_pretrained(path), task.watch)) for step, path in found.items()}
    extras = {f"{STEP}{step}": share for step, share in shares.items()}
    late = [share for step, share in shares.items() if 2 * step > max(shares)]
    extras[LAST_HALF] = Proportion(sum(share.count for share in late), sum(share.total for share in late))
    extras[LOWEST] = min(shares.values(), key=lambda share: share.count)
    return Measured(
        measurement.name, share_of(wrong), measurement.precision, extras, wrong=measurement.positions(wrong)
    )


def affine_copies(task: Task) -> Measured:
    """Affine copies of the digits, anywhere and away from the edge; then the digits moved in one way, step by step."""
    split = measured_split(task.recipe, task.source, task.split)
    size = task.model.image_shape[-1]
    batch_size = BATCH.get(task.device.type, SMALL_BATCH)
    model = task.model.to(task.device)

    def error_on(copies: AffineDigits) -> Proportion:
        count = min(task.limit or len(copies), len(copies))
        made = map(copies.examples, (torch.arange(count) * len(copies) // count).split(batch_size))
        batches = ((to_unit_float(batch.images), batch.labels) for batch in made)
        return share_of(find_errors(model, batches, count, watch=task.watch))

    copies = AffineDigits(split, size=size, device=task.device)
    error = error_on(copies)
    extras = {AWAY_FROM_EDGE: error_on(AffineDigits(split, AWAY_COPIES, size=size, margin=MARGIN, device=task.device))}
    swept = split.select(torch.arange(0, len(split), SWEPT), type(split))
    for name, sweep in SWEEPS.items():
        for amount in sweep.amounts:
            moved = MovedDigits(swept, sweep.kind, sweep.for_move(amount, size), size, task.device)
            batches = ((batch.images, batch.labels) for batch in moved.batches(batch_size))
            extras[f"{name} {amount:g}"] = share_of(find_errors(model, batches, len(moved), watch=task.watch))
    suffix = "" if task.source.name == "mnist" else f":{task.source.name}"
    return Measured(f"{copies.name}{suffix}", error, extras=extras)


def split_turns_and_couplings(task: Task) -> Measured:
    """A split as it is and turned by each angle about its middle, cut at the picture's edge; and the couplings.

    The entropy and the parents of a child are means over the first thousand examples.
    """
    measurement = Measurement(task.recipe, task.source, task.split, task.device, task.limit)
    model = task.model.to(task.device)
    wrong = measurement.errors(model, task.watch)
    size = model.image_shape[-1]
    extras = {"rotation 0": share_of(wrong)}
    for degrees in TURNS:
        for signed in (-degrees, degrees):
            turned = MovedDigits(measurement.split, "rotate", signed, size, task.device).moved
            batches = ((turned(images), labels) for images, labels in measurement.batches())
            found = find_errors(model, batches, measurement.total, measurement.precision, task.watch)
            extras[f"rotation {signed}"] = share_of(found)
        both = extras[f"rotation {-degrees}"], extras[f"rotation {degrees}"]
        extras[f"turned ±{degrees}°"] = Proportion(sum(share.count for share in both), 2 * measurement.total)
    with full_precision():
        couplings = measure_couplings(model, _first(measurement)) if isinstance(model, CapsuleModel) else {}
    return Measured(
        measurement.name, share_of(wrong), measurement.precision, extras, couplings, measurement.positions(wrong)
    )


def _first(measurement: Measurement) -> Iterator[Tensor]:
    """The first pictures, a few at a time, since traces are large."""
    left = PICTURES_TRACED
    for images, _ in measurement.batches():
        yield from images[:left].split(SMALL_BATCH)
        left -= len(images)
        if left <= 0:
            return


PROTOCOLS: dict[str, Callable[[Task], Measured]] = {
    "split": whole_split,
    "checkpoints": every_checkpoint,
    "affine": affine_copies,
    "routing": split_turns_and_couplings,
}
