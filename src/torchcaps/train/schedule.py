"""The learning rate as a function of the step."""

from __future__ import annotations

import math

from torchcaps.train.recipe import ScheduleSection

__all__ = ["ema_weight", "learning_rate"]


def learning_rate(schedule: ScheduleSection, base: float, step: int, total_steps: int) -> float:
    r"""Rate of a step, counted from 0.

    ``exponential`` is that of the authors' code, continuous, with a floor:

    .. math:: \max(\text{floor},\ \text{base} \cdot 0.96^{\text{step} / 2000})

    ``cosine`` and ``linear`` fall from the base to 0, which they would reach one step after the last, but not below the
    floor. Over the first ``warmup_steps`` the rate grows linearly to what the schedule says.

    >>> learning_rate(ScheduleSection("exponential"), 1e-3, step=2000, total_steps=10_000)
    0.00096
    """
    if schedule.name == "exponential":
        rate = base * schedule.decay_rate ** (step / schedule.decay_steps)
    elif schedule.name == "constant":
        rate = base
    else:
        start = min(schedule.warmup_steps, total_steps - 1)
        progress = min(1.0, max(0, step - start) / max(1, total_steps - start))
        share = 1 - progress if schedule.name == "linear" else (1 + math.cos(math.pi * progress)) / 2
        rate = base * share
    rate = max(schedule.floor, rate)
    if step < schedule.warmup_steps:
        rate *= (step + 1) / schedule.warmup_steps
    return rate


def ema_weight(decay: float, step: int) -> float:
    """Share of the new weights in the moving average; larger at first, so that the start values are soon forgotten."""
    return 1 - min(decay, (1 + step) / (10 + step))
