"""The error of a finished run, counted once, in large batches that stay on the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast

import torch
from torch import Tensor

from torchcaps.data import Source
from torchcaps.data.augment import build
from torchcaps.data.loader import evaluation_batches
from torchcaps.data.multimnist import MultiMNIST
from torchcaps.data.source import Split
from torchcaps.data.window import to_unit_float
from torchcaps.errors import DataError
from torchcaps.eval import Proportion, spread_pairs
from torchcaps.eval.evaluate import Watch
from torchcaps.eval.precision import full_precision
from torchcaps.eval.recipe_facts import DataChoice
from torchcaps.models import Model
from torchcaps.train.engine import choose_precision
from torchcaps.train.feed import divide_source
from torchcaps.train.objective import is_wrong
from torchcaps.train.recipe import Recipe

__all__ = ["Measurement", "find_errors", "measured_split", "share_of"]

BATCH = {"cuda": 2000}
SMALL_BATCH = 250
BATCHES_BETWEEN_LOOKS = 20


def measured_split(recipe: Recipe, source: Source, name: str) -> Split:
    """The test split, or the examples that training by this recipe held out."""
    if name == "validation":
        return divide_source(recipe, source)[1]
    if source.test is None:
        raise DataError(f"{source.name} has no test split to measure on")
    return source.test


class Measurement:
    """What a run is measured on, and how.

    Single pictures are measured in full precision, so that a CPU counts the same errors. Pairs are measured in the
    precision that the recipe trains with, since there are ten million of them.

    Args:
        pairs: how many pairs of MultiMNIST, evenly spaced; all without it.
    """

    def __init__(
        self, recipe: Recipe, source: Source, split_name: str, device: torch.device, pairs: int | None = None
    ) -> None:
        self.recipe, self.device = recipe, device
        self.split = measured_split(recipe, source, split_name)
        self._pairs: MultiMNIST | None = None
        self.name, self.total, self.precision = source.name, len(self.split), torch.float32
        if recipe.data.task == "multimnist":
            variant = cast(Literal["paper", "official"], recipe.data.variant)
            self._pairs = MultiMNIST(self.split, variant, device=device)
            self._indices = spread_pairs(self._pairs, pairs or len(self._pairs))
            self.name, self.total = str(DataChoice(source.name, variant)), len(self._indices)
            self.precision = choose_precision(recipe.training.precision, device)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Pictures and labels on the device, in order, nothing random."""
        size = BATCH.get(self.device.type, SMALL_BATCH)
        if self._pairs is not None:
            for indices in self._indices.split(size):
                made = self._pairs.pairs(indices.to(self.device))
                yield to_unit_float(made.images), made.labels
        else:
            for batch in evaluation_batches(self.split, size, self.device, build(self.recipe.data.augment)):
                yield batch.images, batch.labels

    def errors(self, model: Model, watch: Watch | None = None) -> Tensor:
        """Which are wrong, bool ``[total]``; ``watch(done, total)`` is called now and then and may raise to stop."""
        return find_errors(model.to(self.device), self.batches(), self.total, self.precision, watch)

    def positions(self, wrong: Tensor) -> tuple[int, ...] | None:
        """Where in the split the wrong examples stand; pairs stand in none."""
        return None if self._pairs is not None else tuple(wrong.nonzero()[:, 0].tolist())


@torch.no_grad()
def find_errors(
    model: Model,
    batches: Iterator[tuple[Tensor, Tensor]],
    total: int,
    precision: torch.dtype = torch.float32,
    watch: Watch | None = None,
) -> Tensor:
    """Which of ``total`` examples the model gets wrong, bool ``[total]`` on the CPU; a byte an example is kept."""
    device = next(model.parameters()).device
    cuda, half = device.type == "cuda", precision != torch.float32
    if cuda:
        model.to(memory_format=torch.channels_last)
    model.eval()
    wrong: list[Tensor] = []
    done = 0
    with full_precision():
        for number, (images, labels) in enumerate(batches):
            if cuda:
                images = images.contiguous(memory_format=torch.channels_last)
            with torch.autocast(device.type, precision if half else None, enabled=half):
                scores = model(images).scores
            wrong.append(is_wrong(scores, labels))
            done += len(labels)
            if watch is not None and number % BATCHES_BETWEEN_LOOKS == BATCHES_BETWEEN_LOOKS - 1:
                if cuda:
                    torch.cuda.synchronize(device)  # else the host would run minutes ahead of the clock it looks at
                watch(done, total)
    if done != total:
        raise ValueError(f"{total} examples were announced, {done} came")
    return torch.cat(wrong).cpu()


def share_of(wrong: Tensor) -> Proportion:
    """How many of the examples are wrong, bool ``[N]``."""
    return Proportion(int(wrong.sum()), len(wrong))
