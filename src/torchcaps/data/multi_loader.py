"""Training batches of MultiMNIST pairs, as a function of the step alone."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.data.loader import refuse_held_out
from torchcaps.data.multimnist import MultiBatch, MultiMNIST
from torchcaps.data.order import AsStored, OrderWindow, Shuffled
from torchcaps.data.stepping import StepLoader
from torchcaps.data.window import to_unit_float

__all__ = ["MultiLoader"]


class MultiLoader(StepLoader[MultiBatch]):
    """The pairs of a training set of pairs, none twice in ``pairs_per_digit`` epochs, in random order, on the device.

    An epoch visits each base digit once, in an order of its own; epoch e takes pair ``e % pairs_per_digit`` of each.
    So no two examples of an epoch share their base digit, and 1000 epochs of 60,000 are the paper's 60 million; with
    ``drop_last`` an epoch leaves out the digits that fill no batch.
    Steps, ranks, ``prepare`` and the state are those of :class:`torchcaps.data.loader.Loader`.

    >>> from torchcaps.data import sample_digits
    >>> loader = MultiLoader(MultiMNIST(sample_digits("train")), batch_size=128)
    >>> batch = next(iter(loader))
    >>> batch.images.shape, batch.images.dtype, batch.multi_hot().sum(1).unique().item()
    (torch.Size([128, 1, 36, 36]), torch.float32, 2.0)
    """

    def __init__(
        self,
        multi: MultiMNIST,
        batch_size: int,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = True,
        rank: int = 0,
        world_size: int = 1,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        refuse_held_out(multi.split_type)
        super().__init__(multi.num_digits, batch_size, multi.device, seed, drop_last, rank, world_size)
        self.multi = multi
        self.dtype = dtype
        order = Shuffled(multi.num_digits, seed) if shuffle else AsStored(multi.num_digits)
        self._order = OrderWindow(order, self.epoch_length, multi.device)

    def prepare(self, step: int) -> None:
        self._order.prepare(step * self.batch_size)

    def pair_indices(self, step: Tensor) -> Tensor:
        """Which pairs a step shows on this rank: int64 ``[batch_size / world_size]``."""
        positions = self.positions(step)
        turn = (positions // self.epoch_length) % self.multi.pairs_per_digit
        return self._order.rows(positions) * self.multi.pairs_per_digit + turn

    def step_batch(self, step: Tensor) -> MultiBatch:
        pairs = self.multi.pairs(self.pair_indices(step))
        if self.dtype == torch.uint8:
            return pairs
        images, singles = (to_unit_float(pictures, self.dtype) for pictures in (pairs.images, pairs.singles))
        return MultiBatch(images, pairs.labels, singles, pairs.shifts)
