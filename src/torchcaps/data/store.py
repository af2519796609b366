"""Where a loader finds the pictures: all of them on the device, or a window that moves through the epoch."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from torchcaps.data.order import Order, OrderWindow
from torchcaps.data.source import Split
from torchcaps.errors import DataError

__all__ = ["PictureStore", "ResidentStore", "StreamedStore", "bytes_per_example"]


class PictureStore(Protocol):
    """Examples by position; ``gather`` is device work only, ``prepare`` is called by the host before it."""

    def prepare(self, position: int) -> None: ...
    def gather(self, positions: Tensor) -> tuple[Tensor, Tensor]: ...


def bytes_per_example(split: Split) -> int:
    """Memory that one picture with its label takes on the device."""
    columns = (split.images, split.labels)
    return sum(column[0].numel() * column.element_size() for column in columns)


class ResidentStore:
    """The whole set on the device as uint8."""

    def __init__(self, split: Split, order: Order, length: int, device: torch.device) -> None:
        self._images = split.images.to(device)
        self._labels = split.labels.to(device)
        self._order = OrderWindow(order, length, device)

    def prepare(self, position: int) -> None:
        self._order.prepare(position)

    def gather(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        rows = self._order.rows(positions)
        return self._images.index_select(0, rows), self._labels.index_select(0, rows)


class StreamedStore:
    """A set that is too large for the device: two chunks of it, in the order of the epoch, are there at a time.

    The host knows the order without asking the device, since the random numbers are the same on both. It gathers
    the next chunk into pinned memory and copies it over while the device works; the examples are those of
    ``ResidentStore``, batch by batch.
    """

    def __init__(
        self,
        split: Split,
        order: Order,
        length: int,
        device: torch.device,
        batch_size: int,
        budget_bytes: int,
    ) -> None:
        self._split, self._length = split, length
        self._chunk = min(budget_bytes // (2 * bytes_per_example(split)), length)
        if self._chunk < batch_size:
            needed = 2 * batch_size * bytes_per_example(split)
            raise DataError(
                f"a budget of {budget_bytes:,} bytes is too small to stream batches of {batch_size}; it must be at "
                f"least {needed:,} bytes (two batches)"
            )
        self._order = lru_cache(maxsize=2)(order.epoch)
        columns = (split.images, split.labels)
        pinned = device.type == "cuda"
        self._staging = [
            torch.empty((self._chunk, *column.shape[1:]), dtype=column.dtype, pin_memory=pinned) for column in columns
        ]
        self._window = [
            torch.empty((2 * self._chunk, *column.shape[1:]), dtype=column.dtype, device=device) for column in columns
        ]
        self._start = torch.zeros((), dtype=torch.int64, device=device)
        self._copied = torch.cuda.Event() if pinned else None
        self._first = -1  # no chunk is there yet
        self.prepare(0)

    def prepare(self, position: int) -> None:
        """Hold the chunk of this position and the one after it."""
        first = position // self._chunk * self._chunk
        if first == self._first:
            return
        if self._first >= 0 and first == self._first + self._chunk:
            for window in self._window:
                window[: self._chunk].copy_(window[self._chunk :])
        else:
            self._load(first, half=0)
        self._load(first + self._chunk, half=1)
        self._start.fill_(first)
        self._first = first

    def gather(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        rows = positions - self._start
        images, labels = self._window
        return images.index_select(0, rows), labels.index_select(0, rows)

    def _load(self, first: int, half: int) -> None:
        positions = torch.arange(first, first + self._chunk)
        rows = torch.empty_like(positions)
        for epoch in range(first // self._length, (first + self._chunk - 1) // self._length + 1):
            inside = positions // self._length == epoch
            rows[inside] = self._order(epoch)[positions[inside] - epoch * self._length]
        if self._copied is not None:
            self._copied.synchronize()  # the staging memory may still be on its way
        for column, staging, window in zip(
            (self._split.images, self._split.labels), self._staging, self._window, strict=True
        ):
            torch.index_select(column, 0, rows, out=staging)
            window[half * self._chunk :][: self._chunk].copy_(staging, non_blocking=True)
        if self._copied is not None:
            self._copied.record()
