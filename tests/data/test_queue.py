"""The order of a queue: what it shows, how long an entry waits in it, and how recipes ask for it."""

import pytest
import torch

from torchcaps.data import Loader, TrainSplit
from torchcaps.data.order import Queued
from torchcaps.errors import DataError, TorchcapsError
from torchcaps.train.recipe import DataSection


def numbered(count: int) -> TrainSplit:
    return TrainSplit(torch.zeros(count, 1, 4, 4, dtype=torch.uint8), torch.arange(count))


@pytest.mark.parametrize(("count", "copies", "capacity"), [(63, 1, 10), (500, 25, 200), (101, 3, 1), (7, 4, 5000)])
def test_a_pass_shows_each_example_as_often_as_it_has_copies(count: int, copies: int, capacity: int) -> None:
    order = Queued(count, 3, copies, capacity)
    for turn in (0, 2):
        shown = torch.cat([order.epoch(turn * copies + part) for part in range(copies)])
        assert torch.equal(torch.bincount(shown, minlength=count), torch.full((count,), copies))


def test_passes_and_seeds_have_orders_of_their_own() -> None:
    orders = [Queued(500, seed, 2, 50).epoch(epoch) for seed, epoch in ((0, 0), (0, 2), (1, 0))]
    assert not any(torch.equal(orders[i], orders[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert torch.equal(orders[0], Queued(500, 0, 2, 50).epoch(0))


def test_entries_wait_as_in_a_queue_that_is_drawn_from_one_by_one() -> None:
    """Against the queue itself, in plain loops: the spread of "read at" less "shown at" is the same."""
    count, capacity = 40_000, 500
    generator = torch.Generator().manual_seed(0)
    waiting, shown = list(range(capacity)), []
    for entry in range(capacity, count):
        place = int(torch.randint(len(waiting), (), generator=generator))
        shown.append(waiting[place])
        waiting[place] = entry
    plain = torch.tensor(shown)
    inside = slice(10 * capacity, count - 10 * capacity)
    waits = [
        (torch.arange(len(rows)) - rows)[inside].double() for rows in (plain, Queued(count, 0, 1, capacity).epoch(0))
    ]
    levels = torch.tensor([0.1, 0.25, 0.5, 0.75, 0.9], dtype=torch.float64)
    quantiles = [torch.quantile(wait - wait.mean(), levels) for wait in waits]
    # Thirty thousand draws, of which those of one queue's length depend on each other.
    assert torch.allclose(*quantiles, atol=0.05 * capacity)
    assert abs(waits[1].std() / capacity - 1) < 0.05


def test_the_first_batches_come_from_the_beginning_of_the_set() -> None:
    loader = Loader(numbered(2000), 20, queue=100, copies=10, drop_last=False)
    labels = [batch.labels for _, batch in zip(range(5), loader, strict=False)]
    assert torch.cat(labels).max() < 200
    assert torch.cat(labels).unique().numel() < 100  # copies: some digits came more than once


def test_a_streamed_set_is_shown_in_the_same_order() -> None:
    shown = []
    for budget in (8 * 2**30, 40_000):
        loader = Loader(numbered(3000), 64, queue=50, copies=3, drop_last=False, budget_bytes=budget)
        shown.append([batch.labels for _ in range(4) for batch in loader])
    assert all(torch.equal(a, b) for a, b in zip(*shown, strict=True))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"queue": -1}, "data.queue"),
        ({"copies": 0}, "data.copies"),
        ({"queue": 5000}, "data.drop_last = false"),
        ({"copies": 25}, "data.queue"),
        ({"queue": 5000, "drop_last": False, "task": "multimnist"}, "single pictures"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(TorchcapsError, match=words):
        DataSection(**settings)  # type: ignore[arg-type]


def test_a_loader_refuses_to_leave_out_the_end_of_the_set() -> None:
    with pytest.raises(DataError, match="drop_last=False"):
        Loader(numbered(100), 10, queue=50)
