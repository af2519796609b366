"""Steps, epochs and ranks: which positions a batch covers. Loaders of all kinds share it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import torch
from torch import Tensor

from torchcaps.errors import DataError
from torchcaps.ranges import Whole, check_value

__all__ = ["StepLoader"]

Batch = TypeVar("Batch")


class StepLoader(ABC, Generic[Batch]):
    """Batches as a function of the step number.

    Examples are numbered through all epochs by position; step n covers the positions n·batch_size and up, and rank
    r of w takes the r-th of w equal parts of them. Nothing else decides what a batch holds, so that the state to
    save is the step, and w processes see what one would.

    ``for batch in loader`` runs from the present step to the end of its epoch; call it again for the next epoch.
    """

    def __init__(
        self,
        count: int,
        batch_size: int,
        device: torch.device | str,
        seed: int,
        drop_last: bool,
        rank: int,
        world_size: int,
    ) -> None:
        if not 1 <= batch_size <= count:
            raise DataError(f"batch_size must be 1 to {count}, the number of examples, got {batch_size}")
        if not 0 <= rank < world_size or batch_size % world_size:
            raise DataError(
                f"rank {rank} of {world_size} processes with a global batch of {batch_size}: the rank must be "
                f"0 to {world_size - 1} and the batch a multiple of the number of processes"
            )
        self.batch_size = batch_size
        self.device = torch.device(device)
        self.seed = seed
        self.drop_last = drop_last
        self.epoch_length = count // batch_size * batch_size if drop_last else count
        self.step = 0
        share = batch_size // world_size
        self._offsets = torch.arange(rank * share, (rank + 1) * share, device=self.device)

    def positions(self, step: Tensor) -> Tensor:
        """Positions of this rank's examples at a step, int64 ``[batch_size / world_size]``; step is an int64 scalar."""
        return torch.add(self._offsets, step, alpha=self.batch_size)

    @abstractmethod
    def step_batch(self, step: Tensor) -> Batch:
        """The batch of a step, which is an int64 scalar on the device: only device work, so it can be captured."""

    @abstractmethod
    def prepare(self, step: int) -> None:
        """Bring to the device what ``step_batch`` of this step reads; costs nothing unless an epoch or chunk ends."""

    def epoch_of(self, step: int) -> int:
        """The epoch in which a step begins."""
        return step * self.batch_size // self.epoch_length

    def first_step(self, epoch: int) -> int:
        """The first step that begins in an epoch."""
        return -(-epoch * self.epoch_length // self.batch_size)

    def __len__(self) -> int:
        """Steps that begin in the present epoch."""
        epoch = self.epoch_of(self.step)
        return self.first_step(epoch + 1) - self.first_step(epoch)

    def __iter__(self) -> Iterator[Batch]:
        end = self.first_step(self.epoch_of(self.step) + 1)
        while self.step < end:
            step = self.step
            self.prepare(step)
            batch = self.step_batch(torch.full((), step, dtype=torch.int64, device=self.device))
            # Counted before the batch is handed out: a state saved while it is in use resumes after it.
            self.step = step + 1
            yield batch

    def state_dict(self) -> dict[str, int | bool]:
        """Where the loader stands, and what must be the same for the rest to be the same."""
        return {"step": self.step, **self._fixed()}

    def load_state_dict(self, state: Mapping[str, int | bool]) -> None:
        """Go on where another loader stood; it must have had the same set, seed and global batch."""
        for name, value in self._fixed().items():
            if state.get(name) != value:
                raise DataError(
                    f"the saved loader had {name} = {state.get(name)!r}, this one has {value!r}; its examples would "
                    "differ. Build the loader with the saved value, or start anew"
                )
        try:
            check_value(Whole(0), state.get("step"), "the saved loader's step")
        except ValueError as error:
            raise DataError(str(error)) from None
        self.step = state["step"]

    def _fixed(self) -> dict[str, int | bool]:
        return {
            "seed": self.seed,
            "batch_size": self.batch_size,
            "epoch_length": self.epoch_length,
            "drop_last": self.drop_last,
        }
