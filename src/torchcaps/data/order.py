"""The order of the examples: epoch e of seed s is one definite permutation, the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.data.random import RandomStream

__all__ = ["OrderWindow", "epoch_order"]


def epoch_order(count: int, epoch: int, seed: int, device: torch.device | str = "cpu") -> Tensor:
    """The permutation of 0 … count − 1 that an epoch follows: the examples sorted by 64 random bits each.

    Shape:
        Output: int64 ``[count]``.

    >>> sorted(epoch_order(5, epoch=2, seed=0).tolist())
    [0, 1, 2, 3, 4]
    """
    examples = torch.arange(count, device=device)
    bits = RandomStream(seed, f"order/{epoch}").bits(examples).squeeze(-1)
    return torch.argsort(bits, stable=True)


class OrderWindow:
    """Two epochs of order on the device, at fixed addresses, so that a captured graph finds its examples there.

    Examples are numbered through all epochs by their *position*: epoch e holds the positions e·length and up.
    Where a position lies outside of the window, ``rows`` fails (an ``IndexError``, on a GPU a device-side assert);
    it never returns an example of another epoch.

    Args:
        count: number of examples in the set.
        length: how many of them an epoch uses, at most ``count``.
    """

    def __init__(self, count: int, length: int, seed: int, shuffle: bool, device: torch.device | str) -> None:
        self.count, self.length, self.seed, self.shuffle = count, length, seed, shuffle
        self._order = torch.empty(2 * length, dtype=torch.int64, device=device)
        self._start = torch.zeros((), dtype=torch.int64, device=device)
        self._epoch = -2  # none yet, and neither half can be kept
        self.prepare(0)

    def prepare(self, position: int) -> None:
        """Make sure that the window holds this position and at least one whole epoch after it."""
        epoch = position // self.length
        if epoch == self._epoch:
            return
        first, second = self._order.split(self.length)
        if epoch == self._epoch + 1:
            first.copy_(second)
        else:
            first.copy_(self._one_epoch(epoch))
        second.copy_(self._one_epoch(epoch + 1))
        self._start.fill_(epoch * self.length)
        self._epoch = epoch

    def rows(self, positions: Tensor) -> Tensor:
        """Which example stands at each position: int64 ``[B]`` to int64 ``[B]``."""
        return self._order.index_select(0, positions - self._start)

    def _one_epoch(self, epoch: int) -> Tensor:
        device = self._order.device
        if not self.shuffle:
            return torch.arange(self.length, device=device)
        return epoch_order(self.count, epoch, self.seed, device)[: self.length]
