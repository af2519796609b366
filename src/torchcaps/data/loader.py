"""Batches on the device: gathered, shuffled and augmented there, as a function of the step alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps.data.augment import Augmentations
from torchcaps.data.order import AsStored, Order, Queued, Shuffled
from torchcaps.data.source import Split, TestSplit, ValidationSplit
from torchcaps.data.stepping import StepLoader
from torchcaps.data.store import PictureStore, ResidentStore, StreamedStore, bytes_per_example
from torchcaps.data.window import to_unit_float
from torchcaps.errors import DataError

__all__ = ["Batch", "Loader", "evaluation_batches"]


@dataclass(frozen=True)
class Batch:
    """Pictures and labels on the device.

    Shape:
        images: float ``[B, C, H, W]`` in 0 … 1 (unless an augmentation such as ``standardize`` leaves that range);
        labels: int64 ``[B]``, or bool ``[B, K]`` when a picture may show several classes.
    """

    images: Tensor
    labels: Tensor


def _finish(images: Tensor, dtype: torch.dtype, channels_last: bool) -> Tensor:
    images = to_unit_float(images, dtype)
    return images.contiguous(memory_format=torch.channels_last) if channels_last else images


def refuse_held_out(kind: type[Split]) -> None:
    """Raise when a training loader is given examples that were held out."""
    if issubclass(kind, TestSplit | ValidationSplit):
        held_out = "test" if issubclass(kind, TestSplit) else "validation"
        raise DataError(
            f"this is the {held_out} split, and a training loader never takes it: train on a TrainSplit, such as "
            f"source.train, and measure with evaluation_batches(the {held_out} split, ...)"
        )


class Loader(StepLoader[Batch]):
    """Training batches of a split.

    The set lies on the device as uint8 when it fits ``budget_bytes``; otherwise it is streamed from the host in
    chunks, in the same order. With ``drop_last`` an epoch has only full batches and leaves the rest of its order
    out; without it no example is left out, and the batch that crosses the end of an epoch takes its rest from the
    next one. Either way every batch has the same shape. Under several processes ``batch_size`` is the global one.
    With a ``queue`` above 0 the set is read in its own order, each example ``copies`` times in a row, through a queue
    of that many entries (:class:`torchcaps.data.order.Queued`), in place of an order of its own for every epoch.

    In a captured CUDA graph call ``step_batch`` with a step that lies on the device, and before each replay
    ``prepare(step)`` on the host, which only acts when an epoch (or a chunk) ends. Run it once before the capture.

    >>> from torchcaps.data import sample_digits
    >>> from torchcaps.data.augment import build
    >>> loader = Loader(sample_digits("train"), 128, augment=build([{"name": "shift", "pixels": 2}]))
    >>> batch = next(iter(loader))
    >>> batch.images.shape, batch.labels.shape, loader.step
    (torch.Size([128, 1, 28, 28]), torch.Size([128]), 1)
    """

    def __init__(
        self,
        split: Split,
        batch_size: int,
        device: torch.device | str = "cpu",
        augment: Augmentations | None = None,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = True,
        rank: int = 0,
        world_size: int = 1,
        dtype: torch.dtype = torch.float32,
        channels_last: bool = False,
        budget_bytes: int = 8 * 2**30,
        queue: int = 0,
        copies: int = 1,
    ) -> None:
        refuse_held_out(type(split))
        if queue and drop_last:
            raise DataError("with a queue, drop_last would leave out the end of the set in every pass; drop_last=False")
        super().__init__(len(split), batch_size, device, seed, drop_last, rank, world_size)
        self.augment = None if augment is None else augment.seeded(seed)
        self.dtype = dtype
        self.channels_last = channels_last
        self.is_resident = len(split) * bytes_per_example(split) <= budget_bytes
        order: Order = Shuffled(len(split), seed) if shuffle else AsStored(len(split))
        if queue:
            order = Queued(len(split), seed, copies, queue)
        self._store: PictureStore
        if self.is_resident:
            self._store = ResidentStore(split, order, self.epoch_length, self.device)
        else:
            self._store = StreamedStore(split, order, self.epoch_length, self.device, batch_size, budget_bytes)

    def prepare(self, step: int) -> None:
        self._store.prepare(step * self.batch_size)

    def step_batch(self, step: Tensor) -> Batch:
        positions = self.positions(step)
        images, labels = self._store.gather(positions)
        if self.augment is not None:
            images = self.augment(images, positions)
        return Batch(_finish(images, self.dtype, self.channels_last), labels)


def evaluation_batches(
    split: Split,
    batch_size: int,
    device: torch.device | str = "cpu",
    augment: Augmentations | None = None,
    dtype: torch.dtype = torch.float32,
    channels_last: bool = False,
) -> Iterator[Batch]:
    """Every example of a split once, in order, nothing random; the last batch may be shorter.

    ``augment`` is the pipeline that training used: its fixed parts are applied (the central crop in place of the
    random one, the standardisation), its random ones are not.

    >>> from torchcaps.data import sample_digits
    >>> [len(batch.labels) for batch in evaluation_batches(sample_digits("test"), 200)]
    [200, 200, 100]
    """
    for images, labels in zip(split.images.split(batch_size), split.labels.split(batch_size), strict=True):
        moved = images.to(device, non_blocking=True)
        if augment is not None:
            moved = augment.evaluate(moved)
        yield Batch(_finish(moved, dtype, channels_last), labels.to(device, non_blocking=True))
