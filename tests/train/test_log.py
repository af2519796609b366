"""What people see of a run while it goes: every step moves the bar, and two steps are enough for the time left."""

from __future__ import annotations

import importlib

import pytest

from torchcaps.train import fit
from torchcaps.train.log import PlainProgress, ProgressBar
from training_runs import tiny_recipe

SECONDS_OF_A_STEP = 40.0  # so slow that nothing is recorded for minutes


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hand:
    return Hand()


def take_steps(progress, clock: Hand, steps: range) -> None:
    for done in steps:
        clock.now += SECONDS_OF_A_STEP
        progress.step(done)


def record(step: int) -> dict[str, object]:
    return {"kind": "train", "step": step, "loss": 0.5, "error": 0.25, "images_per_second": 20.0}


def test_training_tells_of_every_step_whatever_is_recorded(tmp_path, monkeypatch):
    heard: list[int] = []
    monkeypatch.setattr(PlainProgress, "step", lambda self, done: heard.append(done))
    fit(tiny_recipe("log.every=100", "training.steps=5"), run_dir=tmp_path / "run", device="cpu")
    assert heard == [1, 2, 3, 4, 5]


def test_a_bar_knows_the_time_left_after_two_slow_steps(clock):
    bar = ProgressBar(100, 0, "slow", clock)
    (task,) = bar._progress.tasks
    take_steps(bar, clock, range(1, 2))
    assert (task.completed, task.time_remaining) == (1, None)
    take_steps(bar, clock, range(2, 3))
    assert (task.completed, task.time_remaining) == (2, 98 * SECONDS_OF_A_STEP)
    bar.close()


def test_a_bar_counts_from_where_a_run_goes_on(clock):
    bar = ProgressBar(100, 60, "resumed", clock)
    take_steps(bar, clock, range(61, 64))
    assert bar._progress.tasks[0].time_remaining == 37 * SECONDS_OF_A_STEP
    bar.close()


def test_fast_steps_move_the_bar_ten_times_a_second(clock, monkeypatch):
    bar = ProgressBar(10_000, 0, "fast", clock)
    moves: list[float] = []
    monkeypatch.setattr(bar._progress, "update", lambda task, completed: moves.append(completed))
    for done in range(1, 2001):
        clock.now += 2**-10
        bar.step(done)
    assert 15 <= len(moves) <= 20
    bar.close()


def test_lines_begin_after_seconds_and_know_the_time_left(clock, capsys):
    lines = PlainProgress(100, "slow", clock)
    take_steps(lines, clock, range(1, 3))
    lines.write(record(3))
    take_steps(lines, clock, range(3, 4))
    assert capsys.readouterr().err.splitlines() == [
        "slow: step 1 of 100",
        "slow: step 2 of 100: 1:05:20 left",
        "slow: step 3 of 100: loss 0.5000  error 25.00 %  20 images/s  1:04:40 left",
    ]


def test_lines_of_a_fast_run_are_seconds_apart_and_its_last_step_has_one(clock, capsys):
    lines = PlainProgress(100, "fast", clock)
    for done in range(1, 101):
        clock.now += 0.25
        if done % 10 == 0:
            lines.write(record(done))
        lines.step(done)
    said = [int(line.split()[2]) for line in capsys.readouterr().err.splitlines()]
    assert said == [12, 52, 92, 100]


def test_a_quiet_run_has_no_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("torchcaps.train.fit"), "make_progress", None)
    fit(tiny_recipe("training.steps=1"), run_dir=tmp_path / "run", device="cpu", progress=False)
