"""The rate at each step, against the formulas."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from torchcaps.train.ema import WeightAverage
from torchcaps.train.recipe import ScheduleSection
from torchcaps.train.schedule import ema_weight, learning_rate


def test_exponential_is_that_of_the_authors_code():
    schedule = ScheduleSection("exponential", decay_rate=0.96, decay_steps=2000, floor=1e-6)
    for step in (0, 1, 1999, 2000, 37_123):
        assert learning_rate(schedule, 1e-3, step, 300_000) == 1e-3 * 0.96 ** (step / 2000)
    assert learning_rate(schedule, 1e-3, 1_000_000, 2_000_000) == 1e-6


@pytest.mark.parametrize(("name", "halfway"), [("linear", 0.5), ("cosine", 0.5), ("constant", 1.0)])
def test_shapes(name, halfway):
    schedule = ScheduleSection(name, floor=0.0)
    assert learning_rate(schedule, 2.0, 0, 100) == 2.0
    assert learning_rate(schedule, 2.0, 50, 100) == pytest.approx(2 * halfway)
    quarter = {"linear": 0.75, "cosine": (1 + math.cos(math.pi / 4)) / 2, "constant": 1.0}[name]
    assert learning_rate(schedule, 2.0, 25, 100) == pytest.approx(2 * quarter)


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_falls_to_the_floor_and_never_rises_again(name):
    rates = [learning_rate(ScheduleSection(name, floor=0.01), 1.0, step, 50) for step in range(60)]
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] == 0.01


@pytest.mark.parametrize("name", ["constant", "linear", "cosine", "exponential"])
def test_warm_up_grows_in_equal_steps_from_above_zero(name):
    schedule = ScheduleSection(name, decay_rate=1.0, warmup_steps=4)
    rates = [learning_rate(schedule, 1.0, step, 100) for step in range(5)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0])


def test_the_average_forgets_the_start_and_then_keeps_its_decay():
    assert ema_weight(0.99, 0) == pytest.approx(0.9)
    assert ema_weight(0.99, 10**6) == pytest.approx(0.01)


def test_the_average_takes_the_counter_of_a_normalisation_along():
    model = nn.BatchNorm1d(2)
    average = WeightAverage(model, 0.5)
    for step in range(3):
        model(torch.randn(4, 2) + 7)
        average.prepare(step)
        average.update()
    assert average.model.num_batches_tracked == 3
    assert 0 < average.model.running_mean.mean() < model.running_mean.mean()
