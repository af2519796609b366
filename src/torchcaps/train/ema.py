"""A moving average of the weights, which often generalises better than the last ones."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from torchcaps.models import Model
from torchcaps.train.schedule import ema_weight

__all__ = ["WeightAverage"]


class WeightAverage:
    """A second copy of the model that follows the first: average += share · (weights − average).

    The share is a tensor at a fixed address, so that a captured step can use it; :meth:`prepare` sets it.
    """

    def __init__(self, model: Model, decay: float) -> None:
        self.decay = decay
        self.model: Model = copy.deepcopy(model).eval().requires_grad_(False)
        followed, following = model.state_dict(), self.model.state_dict()
        floating = [name for name, tensor in followed.items() if tensor.is_floating_point()]
        self._followed: list[Tensor] = [followed[name] for name in floating]
        self._following: list[Tensor] = [following[name] for name in floating]
        # Counters, such as the number of batches that a normalisation has seen.
        self._counters = [(following[name], followed[name]) for name in followed if name not in floating]
        self._share = torch.ones((), device=self._followed[0].device)

    def prepare(self, step: int) -> None:
        """Set the share of the new weights for a step."""
        self._share.fill_(ema_weight(self.decay, step))

    @torch.no_grad()
    def update(self) -> None:
        """Take one step towards the present weights; device work only."""
        difference = torch._foreach_sub(self._followed, self._following)
        torch._foreach_mul_(difference, self._share)
        torch._foreach_add_(self._following, difference)
        for mine, theirs in self._counters:
            mine.copy_(theirs)
