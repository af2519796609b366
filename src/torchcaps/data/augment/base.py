"""What an augmentation is."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor

from torchcaps.data.random import RandomStream
from torchcaps.errors import DataError

__all__ = ["Augmentation", "require"]


class Augmentation(ABC):
    """One change of a batch of pictures, drawn anew for each example.

    Subclasses are frozen dataclasses whose fields are the parameters that a recipe may set. uint8 pictures are
    0 … 255, float ones 0 … 1; what only moves pixels keeps the type, what computes with them returns floats.

    Shape:
        images: uint8 or float ``[B, C, H, W]``; counter: int64 ``[B]``, a number for each example that no other
        example of the run has. The result depends on an example, its counter and the stream, on nothing else.
    """

    @abstractmethod
    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor: ...

    def evaluate(self, images: Tensor) -> Tensor:
        """What of it is done at test time; by default nothing."""
        return images


def require(fits: bool, owner: object, expected: str) -> None:
    """Raise with the whole setting and what was expected of it."""
    if not fits:
        raise DataError(f"{owner}: {expected}")
