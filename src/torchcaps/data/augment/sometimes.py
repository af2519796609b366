"""An augmentation for some of the examples, so that the others are seen as they are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps.data.augment.base import Augmentation, require
from torchcaps.data.random import RandomStream
from torchcaps.ranges import Share

__all__ = ["Sometimes"]

# The coin is tossed with counters that no example has, so that it is independent of what the augmentation itself draws.
COINS = 1 << 44


@dataclass(frozen=True)
class Sometimes(Augmentation):
    """Another augmentation for an example with a chance of ``chance``, which a recipe writes beside its parameters."""

    what: Augmentation
    chance: Share

    def __post_init__(self) -> None:
        require(0 <= self.chance <= 1, self, "chance must be a share from 0 to 1")

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        changed = self.what(images, counter, random)
        require(
            changed.shape == images.shape and changed.dtype == images.dtype,
            self,
            "chance fits only what leaves size and type of a picture alone (shift, flip, cutout, affine, elastic and "
            "deform)",
        )
        chosen = random.uniform(counter + COINS) < self.chance  # [B, 1]
        return torch.where(chosen[:, :, None, None], changed, images)

    def evaluate(self, images: Tensor) -> Tensor:
        return self.what.evaluate(images)
