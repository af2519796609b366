"""A chain of augmentations, and how a recipe names it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from torch import Tensor

from torchcaps._foreign import shown
from torchcaps.data.augment.base import Augmentation
from torchcaps.data.augment.deform import Affine, Deform, Elastic
from torchcaps.data.augment.geometric import Crop, Cutout, Flip, Place, Shift
from torchcaps.data.augment.photometric import Brightness, Contrast, Standardize
from torchcaps.data.augment.sometimes import Sometimes
from torchcaps.data.random import RandomStream
from torchcaps.errors import DataError
from torchcaps.ranges import Anything, Many, check_values

__all__ = ["AUGMENTATIONS", "Augmentation", "Augmentations", "SeededAugmentations", "build"]

MOST_STEPS = 64  # of a chain
AUGMENTATIONS: dict[str, type[Augmentation]] = {
    "affine": Affine,
    "brightness": Brightness,
    "contrast": Contrast,
    "crop": Crop,
    "cutout": Cutout,
    "deform": Deform,
    "elastic": Elastic,
    "flip": Flip,
    "place": Place,
    "shift": Shift,
    "standardize": Standardize,
}


@dataclass(frozen=True)
class Augmentations:
    """Several augmentations, one after the other, each with random numbers of its own.

    >>> import torch
    >>> pipeline = build([{"name": "shift", "pixels": 2}, {"name": "cutout", "size": 8}])
    >>> images = torch.zeros(4, 1, 28, 28, dtype=torch.uint8)
    >>> pipeline(images, counter=torch.arange(4), seed=0).shape
    torch.Size([4, 1, 28, 28])
    """

    steps: tuple[Augmentation, ...]

    def __call__(self, images: Tensor, counter: Tensor, seed: int) -> Tensor:
        """Change each example by its counter and the seed; shapes as in :class:`Augmentation`."""
        return self.seeded(seed)(images, counter)

    def seeded(self, seed: int) -> SeededAugmentations:
        """The chain with its random streams made once, for use in a loop or a compiled step."""
        streams = tuple(RandomStream(seed, f"augment/{place}") for place in range(len(self.steps)))
        return SeededAugmentations(self.steps, streams)

    def evaluate(self, images: Tensor) -> Tensor:
        """The fixed part of the chain, for pictures that are measured and not learned from."""
        for step in self.steps:
            images = step.evaluate(images)
        return images

    def placed(self, images: Tensor) -> Tensor:
        """The fixed part without the standardisation: pixels stay pixels, which people can look at."""
        for step in self.placing_steps:
            images = step.evaluate(images)
        return images

    @property
    def placing_steps(self) -> list[Augmentation]:
        """The steps of :meth:`placed`, each without the chance with which it is drawn in training."""
        plain = [step.what if isinstance(step, Sometimes) else step for step in self.steps]
        acting = [step for step in plain if type(step).evaluate is not Augmentation.evaluate]
        return [step for step in acting if not isinstance(step, Standardize)]

    @property
    def standardize(self) -> Standardize | None:
        """The standardisation, which is done where a network is called."""
        return next((step for step in self.steps if isinstance(step, Standardize)), None)


@dataclass(frozen=True)
class SeededAugmentations:
    """A chain of augmentations of one seed: ``(images, counter) -> images``."""

    steps: tuple[Augmentation, ...]
    streams: tuple[RandomStream, ...]

    def __call__(self, images: Tensor, counter: Tensor) -> Tensor:
        for step, stream in zip(self.steps, self.streams, strict=True):
            images = step(images, counter, stream)
        return images


def build(specifications: Sequence[Mapping[str, object]]) -> Augmentations:
    """Make a chain from a recipe: a name and parameters for each step, and ``chance`` where some examples go without.

    >>> build([{"name": "shift", "pixels": 2}]).steps
    (Shift(pixels=2),)
    >>> build([{"name": "flip", "chance": 0.5}]).steps
    (Sometimes(what=Flip(probability=0.5), chance=0.5),)
    """
    check = Many(Anything(), most=MOST_STEPS)
    if not check.holds(specifications):
        raise DataError(f"augmentations are {check}, got {shown(specifications)}")
    return Augmentations(tuple(_build_one(specification) for specification in specifications))


def _build_one(specification: Mapping[str, object]) -> Augmentation:
    if not isinstance(specification, Mapping):
        raise DataError(f"an augmentation is a table such as {{name = 'shift'}}, got {shown(specification)}")
    parameters = dict(specification)
    name = parameters.pop("name", None)
    if not isinstance(name, str) or name not in AUGMENTATIONS:
        raise DataError(f"no augmentation is named {shown(name)}; choose from {', '.join(AUGMENTATIONS)}")
    kind = AUGMENTATIONS[name]
    chance = parameters.pop("chance", 1)
    known = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for parameter in parameters:
        if parameter not in known:
            choices = ", ".join([*known, "chance"]) if known else "none at all"
            raise DataError(f"augmentation {name!r} has no parameter {shown(parameter)}; it takes {choices}")
    missing = [key for key, field in known.items() if field.default is dataclasses.MISSING and key not in parameters]
    if missing:
        raise DataError(f"augmentation {name!r} needs {', '.join(missing)}")
    try:
        check_values(kind, parameters, f"augmentation {name!r}: ")
        check_values(Sometimes, {"chance": chance}, f"augmentation {name!r}: ")
    except ValueError as error:
        raise DataError(str(error)) from None
    step = kind(**parameters)
    return step if chance == 1 else Sometimes(step, cast("float", chance))
