"""The test pictures that the studio shows: uint8, in the shape that a model takes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from torchcaps.data.augment.base import Augmentation
from torchcaps.data.catalog import CATALOG
from torchcaps.data.registry import load
from torchcaps.errors import TorchcapsError
from torchcaps.eval.examples import Examples, choose_examples
from torchcaps.eval.metrics import true_classes
from torchcaps.eval.runs import Run
from torchcaps.models import Model

__all__ = ["ExampleSet", "example_set", "sample_set"]

MOST_PAIRS = 2000


@dataclass(frozen=True)
class ExampleSet:
    """Examples by index.

    ``margin`` black pixels on each side make digits of 28×28 fit a model with a larger canvas.
    """

    examples: Examples
    margin: int = 0

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def id(self) -> str:
        """The same for the same pictures and classes, at every start; another where anything that shapes them differs.

        A published set as it was published has its own name. Any other also has its shape, and a hash of the rest:
        the whole path, the order of the classes, the steps of the recipe, the margin.
        """
        examples = self.examples
        name = re.sub(r"[^A-Za-z0-9.-]+", "-", examples.name)[-60:].strip("-.") or "examples"
        published = CATALOG.get(examples.name)
        untouched = not self._fixed_steps and self.margin == 0 and examples.pairs is None
        if published and untouched and (published.classes, published.test_count) == (examples.classes, len(self)):
            return name
        pairs = examples.pairs and (examples.pairs.variant, examples.pairs.seed, examples.pairs.pairs_per_digit)
        told = (examples.name, examples.split_name, examples.classes, len(self), pairs, self._fixed_steps, self.margin)
        shape = "x".join(map(str, self.image_shape))
        return f"{name}-{shape}-{hashlib.sha256(repr(told).encode()).hexdigest()[:8]}"

    @property
    def name(self) -> str:
        return self.examples.name

    @property
    def classes(self) -> tuple[str, ...]:
        return self.examples.classes

    @property
    def things(self) -> int:
        """How many classes a picture shows; 0 where it may be any number."""
        if self.examples.pairs is not None:
            return 2
        return 0 if self.examples.any_number_of_classes else 1

    @property
    def image_shape(self) -> tuple[int, int, int]:
        C, H, W = self.pictures(torch.tensor([0])).shape[1:]
        return C, H, W

    @property
    def _fixed_steps(self) -> list[Augmentation]:
        return [] if self.examples.augment is None else self.examples.augment.placing_steps

    def pictures(self, positions: Tensor) -> Tensor:
        """uint8 ``[n, C, H, W]``: cropped and placed as the model's recipe does, but not standardised."""
        if self.examples.pairs is not None and self.examples.pair_indices is not None:
            return self.examples.pairs.pairs(self.examples.pair_indices[positions]).images
        images = self.examples.split.images[positions]
        if self.examples.augment is not None:
            images = self.examples.augment.placed(images)
        return torch.nn.functional.pad(images, (self.margin,) * 4) if self.margin else images

    def fit(self, model: Model) -> bool:
        """Whether a model takes these pictures and tells as many classes apart."""
        return self.image_shape == model.image_shape and len(self.classes) == model.num_classes

    def labels(self, position: int) -> list[int]:
        """The class or classes of one example."""
        return [int(j) for j in self.truth(torch.tensor([position]))[0].nonzero()[:, 0]]

    def files(self, positions: list[int]) -> list[str] | None:
        """The names of the files of some examples, where they have names."""
        names = [self.examples.file(position) for position in positions]
        known = [name for name in names if name is not None]
        return known if known and len(known) == len(names) else None

    def truth(self, positions: Tensor) -> Tensor:
        """Which classes are there, bool ``[n, J]``."""
        return true_classes(self.examples.labels(positions), len(self.classes))


def example_set(run: Run, model: Model, data_name: str | None) -> ExampleSet:
    """The examples that belong to a model, or an error when none of that name fit it.

    Args:
        data_name: as for ``--data``; left out, those of the run's recipe, else the embedded digits.
    """
    examples = choose_examples(run, model, data_name, "test", pairs=MOST_PAIRS)
    if len(examples.classes) != model.num_classes:
        raise TorchcapsError(
            f"{examples.name} has {len(examples.classes)} classes, the model tells {model.num_classes} apart"
        )
    if not len(examples):
        raise TorchcapsError(f"{examples.name} has no test pictures; name other data with --data")
    return ExampleSet(examples, _margin(ExampleSet(examples).image_shape, model.image_shape))


def sample_set() -> ExampleSet:
    """The embedded digits as they are, which every studio has: drawn over each other they make pairs."""
    source = load("mnist-sample")
    assert source.test is not None
    return ExampleSet(Examples(source.name, "test", source.classes, source.test))


def _margin(shape: tuple[int, int, int], wanted: tuple[int, int, int]) -> int:
    """Black pixels to add on every side; an error where that does not make the one shape from the other."""
    (C, H, W), (channels, height, width) = shape, wanted
    missing = height - H
    if channels != C or missing != width - W or missing < 0 or missing % 2:
        raise TorchcapsError(
            f"the pictures are {C}×{H}×{W}, the model takes {channels}×{height}×{width}; name fitting data with --data"
        )
    return missing // 2
