"""The loader: epochs are permutations, shards partition, resuming changes nothing, test data is refused."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import torchcaps.data.loader
from torchcaps.data import Split, TestSplit, TrainSplit, ValidationSplit, sample_digits
from torchcaps.data.augment import build
from torchcaps.data.loader import Batch, Loader, evaluation_batches
from torchcaps.data.order import epoch_order
from torchcaps.data.store import bytes_per_example
from torchcaps.errors import DataError

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SHIFT = build([{"name": "shift", "pixels": 2}])


def numbered_split(count: int) -> TrainSplit:
    """Picture i has label i and the grey level i % 256, so that a batch tells which examples it holds."""
    levels = (torch.arange(count) % 256).to(torch.uint8)
    return TrainSplit(levels[:, None, None, None].expand(-1, 1, 3, 2).contiguous(), torch.arange(count))


def take(loader: Loader, steps: int) -> list[Batch]:
    """Batches of the next steps, over the end of an epoch where needed."""
    batches: list[Batch] = []
    while len(batches) < steps:
        for batch in loader:
            batches.append(batch)
            if len(batches) == steps:
                break
    return batches


def seen(batches: list[Batch]) -> Tensor:
    return torch.cat([batch.labels for batch in batches])


@pytest.mark.parametrize("count", [64, 63, 65])
def test_epoch_with_full_batches_only(count: int) -> None:
    loader = Loader(numbered_split(count), 8, seed=4)
    for epoch in range(3):
        labels = seen(list(loader))
        assert len(labels) == count // 8 * 8 == 8 * len(loader)
        assert torch.equal(labels, epoch_order(count, epoch, seed=4)[: len(labels)])


@pytest.mark.parametrize("count", [10, 11, 37])
def test_nothing_is_left_out_without_drop_last(count: int) -> None:
    loader = Loader(numbered_split(count), 10, drop_last=False)
    epochs = [list(loader) for _ in range(10)]
    assert all(len(batch.labels) == 10 for epoch in epochs for batch in epoch)
    stream = seen([batch for epoch in epochs for batch in epoch])
    assert len(stream) >= 10 * count
    for epoch in range(10):
        part = stream[epoch * count : (epoch + 1) * count]
        assert torch.equal(part.sort().values, torch.arange(count))


def test_batch_holds_the_pictures_of_its_labels() -> None:
    batch = next(iter(Loader(numbered_split(200), 50)))
    expected = (batch.labels.float() / 255)[:, None, None, None].expand(-1, 1, 3, 2)
    torch.testing.assert_close(batch.images, expected)


def test_unshuffled_is_in_order() -> None:
    assert torch.equal(seen(list(Loader(numbered_split(20), 5, shuffle=False))), torch.arange(20))


@pytest.mark.parametrize("world_size", [2, 3, 6])
@pytest.mark.parametrize("drop_last", [True, False])
def test_processes_together_see_what_one_would(world_size: int, drop_last: bool) -> None:
    split = sample_digits("train")
    common = {"augment": SHIFT, "seed": 9, "drop_last": drop_last}
    alone = take(Loader(split, 300, **common), 7)
    ranks = [Loader(split, 300, rank=rank, world_size=world_size, **common) for rank in range(world_size)]
    for whole, *parts in zip(alone, *(take(rank, 7) for rank in ranks), strict=True):
        assert torch.equal(torch.cat([part.images for part in parts]), whole.images)
        assert torch.equal(torch.cat([part.labels for part in parts]), whole.labels)


@pytest.mark.parametrize("stop", [1, 4, 10, 13])
def test_resumed_is_as_uninterrupted(stop: int) -> None:
    split = sample_digits("train")
    whole = take(Loader(split, 100, augment=SHIFT, seed=1), 20)
    first = Loader(split, 100, augment=SHIFT, seed=1)
    take(first, stop)
    second = Loader(split, 100, augment=SHIFT, seed=1)
    second.load_state_dict(first.state_dict())
    for resumed, expected in zip(take(second, 20 - stop), whole[stop:], strict=True):
        assert torch.equal(resumed.images, expected.images)
        assert torch.equal(resumed.labels, expected.labels)


def test_state_of_another_run_is_refused() -> None:
    state = Loader(numbered_split(50), 10, seed=1).state_dict()
    with pytest.raises(DataError, match="seed = 1, this one has 2"):
        Loader(numbered_split(50), 10, seed=2).load_state_dict(state)
    with pytest.raises(DataError, match="batch_size"):
        Loader(numbered_split(50), 5, seed=1).load_state_dict(state)


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("chunk", [8, 13, 30, 47])
def test_streamed_is_as_resident(chunk: int, drop_last: bool) -> None:
    split = numbered_split(101)
    resident = Loader(split, 8, augment=SHIFT, drop_last=drop_last)
    streamed = Loader(split, 8, augment=SHIFT, drop_last=drop_last, budget_bytes=2 * chunk * bytes_per_example(split))
    assert (resident.is_resident, streamed.is_resident) == (True, False)
    for ours, theirs in zip(take(streamed, 40), take(resident, 40), strict=True):
        assert torch.equal(ours.labels, theirs.labels)
        assert torch.equal(ours.images, theirs.images)


def test_streamed_can_jump() -> None:
    split = numbered_split(101)
    streamed = Loader(split, 8, budget_bytes=2 * 20 * bytes_per_example(split))
    for step in (30, 2, 3, 90):
        streamed.prepare(step)
        expected = epoch_order(101, step // 12, 0)[step % 12 * 8 :][:8]
        assert torch.equal(streamed.step_batch(torch.tensor(step)).labels, expected)


def test_augmentation_is_drawn_anew_in_each_epoch() -> None:
    split = sample_digits("train")
    loader = Loader(split, 1000, augment=SHIFT)
    epochs = take(loader, 2)
    sorted_images = [batch.images[epoch_order(1000, epoch, 0).argsort()] for epoch, batch in enumerate(epochs)]
    same = (sorted_images[0] == sorted_images[1]).flatten(1).all(1).float().mean()
    assert float(same) < 0.08  # one in 25 by chance


def test_types_and_layout() -> None:
    split = TrainSplit(torch.full((6, 3, 4, 5), 255, dtype=torch.uint8), torch.arange(6))
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
        images = next(iter(Loader(split, 6, dtype=dtype))).images
        assert images.dtype == dtype
        assert float(images.max()) == 1.0
    images = next(iter(Loader(split, 6, channels_last=True))).images
    assert images.is_contiguous(memory_format=torch.channels_last)


def test_every_grey_level_stays_in_the_unit_interval() -> None:
    levels = next(iter(Loader(numbered_split(256), 256, shuffle=False))).images[:, 0, 0, 0]
    assert (float(levels[0]), float(levels[255])) == (0.0, 1.0)
    assert torch.equal((levels * 255).round().long(), torch.arange(256))
    assert bool((levels.diff() > 0).all())


def test_several_labels_for_a_picture() -> None:
    labels = torch.from_numpy(np.random.default_rng(0).random((30, 4)) < 0.5)
    batch = next(iter(Loader(TrainSplit(numbered_split(30).images, labels), 10)))
    assert torch.equal(batch.labels, labels[epoch_order(30, 0, 0)[:10]])


def test_evaluation_shows_all_in_order() -> None:
    split = sample_digits("test")
    batches = list(evaluation_batches(split, 64))
    torch.testing.assert_close(torch.cat([batch.images for batch in batches]), split.images.float() / 255)
    assert torch.equal(seen(batches), split.labels)


def test_evaluation_applies_only_what_is_fixed() -> None:
    chain = build([{"name": "shift"}, {"name": "crop", "size": 24}, {"name": "flip"}, {"name": "standardize"}])
    batch = next(evaluation_batches(sample_digits("test"), 5, augment=chain))
    central = sample_digits("test").images[:5, :, 2:26, 2:26].float() / 255
    expected = (central - central.mean((1, 2, 3), keepdim=True)) / central.std((1, 2, 3), keepdim=True, correction=0)
    torch.testing.assert_close(batch.images, expected)


@pytest.mark.parametrize(
    ("split", "arguments", "message"),
    [
        (
            TestSplit(numbered_split(9).images, numbered_split(9).labels),
            {"batch_size": 3},
            "test split.*evaluation_batches",
        ),
        (ValidationSplit(numbered_split(9).images, numbered_split(9).labels), {"batch_size": 3}, "validation split"),
        (numbered_split(9), {"batch_size": 10}, "1 to 9"),
        (numbered_split(9), {"batch_size": 0}, "1 to 9"),
        (numbered_split(9), {"batch_size": 4, "rank": 2, "world_size": 2}, "rank must be 0 to 1"),
        (numbered_split(9), {"batch_size": 5, "world_size": 2}, "multiple"),
        (numbered_split(9), {"batch_size": 4, "budget_bytes": 50}, "at least 112 bytes"),
    ],
)
def test_bad_input_is_refused_with_advice(split: Split, arguments: dict[str, int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        Loader(split, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["shift", "affine", "elastic"])
def test_step_is_traced_without_a_break(name: str) -> None:
    loader = Loader(sample_digits("train"), 16, augment=build([{"name": name}]))
    traced = torch.compile(loader.step_batch, backend="eager", fullgraph=True)
    for step in (torch.tensor(0), torch.tensor(5)):
        assert torch.equal(traced(step).images, loader.step_batch(step).images)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("budget_bytes", [8 * 2**30, 500_000])
def test_same_batches_on_the_gpu_eager_and_captured(budget_bytes: int) -> None:
    split = sample_digits("train")
    expected = take(Loader(split, 128, augment=SHIFT), 20)
    loader = Loader(split, 128, "cuda", augment=SHIFT, budget_bytes=budget_bytes)
    step = torch.zeros((), dtype=torch.int64, device="cuda")
    loader.step_batch(step)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = loader.step_batch(step)
        step += 1
    for number, (eager, wanted) in enumerate(zip(take(loader, 20), expected, strict=True)):
        assert torch.equal(eager.images.cpu(), wanted.images), number
    for number, wanted in enumerate(expected):
        loader.prepare(number)
        graph.replay()
        assert torch.equal(captured.images.cpu(), wanted.images), number
        assert torch.equal(captured.labels.cpu(), wanted.labels), number


@pytest.mark.gpu
@needs_cuda
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_no_host_synchronisation_in_the_loop() -> None:
    loader = Loader(sample_digits("train"), 100, "cuda", augment=SHIFT)
    take(loader, 12)
    torch.cuda.set_sync_debug_mode("error")
    try:
        take(loader, 25)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_examples_in_the_docstrings() -> None:
    result = doctest.testmod(torchcaps.data.loader)
    assert result.attempted > 0
    assert result.failed == 0


def test_examples_in_the_manual() -> None:
    text = (Path(__file__).parents[2] / "docs" / "loader.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert examples
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
    assert int(names["step"]) == 1  # type: ignore[call-overload]
