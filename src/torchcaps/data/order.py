"""The order of the examples: epoch e of seed s is one definite list of them, the same on every device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from torchcaps.data.random import RandomStream

__all__ = ["AsStored", "Order", "OrderWindow", "Queued", "Shuffled", "epoch_order"]


class Order(Protocol):
    """Which examples an epoch shows, one after the other: int64 ``[count]``."""

    @property
    def count(self) -> int: ...
    def epoch(self, epoch: int, device: torch.device | str = "cpu") -> Tensor: ...


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


@dataclass(frozen=True)
class AsStored:
    """Every epoch in the order of the set."""

    count: int

    def epoch(self, epoch: int, device: torch.device | str = "cpu") -> Tensor:
        return torch.arange(self.count, device=device)


@dataclass(frozen=True)
class Shuffled:
    """Every epoch an order of its own, all of them equally likely."""

    count: int
    seed: int

    def epoch(self, epoch: int, device: torch.device | str = "cpu") -> Tensor:
        return epoch_order(self.count, epoch, self.seed, device)


@dataclass(frozen=True)
class Queued:
    """The set read from its beginning to its end through a queue, from which examples are drawn at random.

    A pass reads each example ``copies`` times in a row; what is read waits in a queue of ``capacity`` entries, and
    whatever is needed is drawn from it, each entry equally likely. So an entry waits as long as ``capacity`` others on
    average, by an exponential distribution, and examples that are neighbours in the set stay near each other.
    ``copies`` epochs make a pass. This is how the authors' code feeds its 25 shifted copies of each digit.

    >>> order = Queued(count=1000, seed=0, copies=4, capacity=100)
    >>> first = order.epoch(0)
    >>> len(first), bool(first.max() < 600)
    (1000, True)
    """

    count: int
    seed: int
    copies: int
    capacity: int

    def epoch(self, epoch: int, device: torch.device | str = "cpu") -> Tensor:
        turn, part = divmod(epoch, self.copies)
        return _queued_pass(self, turn)[part * self.count : (part + 1) * self.count].to(device)


@lru_cache(maxsize=2)
def _queued_pass(order: Queued, turn: int) -> Tensor:
    # On the CPU whatever the device: logarithms differ in their last bits, and the order must not.
    entries = torch.arange(order.count * order.copies)
    unit = RandomStream(order.seed, f"queue/{turn}").uniform(entries).squeeze(-1).double()
    # Nothing leaves the queue before it is full.
    leaves = entries.clamp(min=order.capacity) - order.capacity * torch.log1p(-unit)
    return torch.argsort(leaves, stable=True) // order.copies


class OrderWindow:
    """Two epochs of order on the device, at fixed addresses, so that a captured graph finds its examples there.

    Examples are numbered through all epochs by their *position*: epoch e holds the positions e·length and up.
    Where a position lies outside of the window, ``rows`` fails (an ``IndexError``, on a GPU a device-side assert);
    it never returns an example of another epoch.

    Args:
        order: which examples an epoch shows.
        length: how many of them are used, at most ``order.count``.
    """

    def __init__(self, order: Order, length: int, device: torch.device | str) -> None:
        self.order, self.length = order, length
        self._rows = torch.empty(2 * length, dtype=torch.int64, device=device)
        self._start = torch.zeros((), dtype=torch.int64, device=device)
        self._epoch = -2  # none yet, and neither half can be kept
        self.prepare(0)

    def prepare(self, position: int) -> None:
        """Make sure that the window holds this position and at least one whole epoch after it."""
        epoch = position // self.length
        if epoch == self._epoch:
            return
        first, second = self._rows.split(self.length)
        if epoch == self._epoch + 1:
            first.copy_(second)
        else:
            first.copy_(self._one_epoch(epoch))
        second.copy_(self._one_epoch(epoch + 1))
        self._start.fill_(epoch * self.length)
        self._epoch = epoch

    def rows(self, positions: Tensor) -> Tensor:
        """Which example stands at each position: int64 ``[B]`` to int64 ``[B]``."""
        return self._rows.index_select(0, positions - self._start)

    def _one_epoch(self, epoch: int) -> Tensor:
        return self.order.epoch(epoch, self._rows.device)[: self.length]
