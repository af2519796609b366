"""The test pictures that the studio shows: uint8, in the shape that a model takes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps.data.augment.photometric import Standardize
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

    id: str
    examples: Examples
    margin: int = 0

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def name(self) -> str:
        return self.examples.name

    @property
    def classes(self) -> tuple[str, ...]:
        return self.examples.classes

    @property
    def image_shape(self) -> tuple[int, int, int]:
        C, H, W = self.pictures(torch.tensor([0])).shape[1:]
        return C, H, W

    def pictures(self, positions: Tensor) -> Tensor:
        """uint8 ``[n, C, H, W]``: cropped and placed as the model's recipe does, but not standardised."""
        if self.examples.pairs is not None and self.examples.pair_indices is not None:
            return self.examples.pairs.pairs(self.examples.pair_indices[positions]).images
        images = self.examples.split.images[positions]
        for step in self.examples.augment.steps if self.examples.augment else ():
            if not isinstance(step, Standardize):  # which is done where the network is called
                images = step.evaluate(images)
        return torch.nn.functional.pad(images, (self.margin,) * 4) if self.margin else images

    def labels(self, position: int) -> list[int]:
        """The class or classes of one example."""
        return [int(j) for j in self.truth(torch.tensor([position]))[0].nonzero()[:, 0]]

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
    name = re.sub(r"[^A-Za-z0-9.-]+", "-", examples.name)[-60:].strip("-.") or "examples"
    plain = ExampleSet(name, examples)
    margin = _margin(plain.image_shape, model.image_shape)
    return plain if margin == 0 else ExampleSet(f"{name}-{model.image_shape[1]}", examples, margin)


def sample_set() -> ExampleSet:
    """The embedded digits as they are, which every studio has: drawn over each other they make pairs."""
    source = load("mnist-sample")
    assert source.test is not None
    return ExampleSet(source.name, Examples(source.name, "test", source.classes, source.test))


def _margin(shape: tuple[int, int, int], wanted: tuple[int, int, int]) -> int:
    """Black pixels to add on every side; an error where that does not make the one shape from the other."""
    (C, H, W), (channels, height, width) = shape, wanted
    missing = height - H
    if channels != C or missing != width - W or missing < 0 or missing % 2:
        raise TorchcapsError(
            f"the pictures are {C}×{H}×{W}, the model takes {channels}×{height}×{width}; name fitting data with --data"
        )
    return missing // 2
