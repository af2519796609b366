"""Fair timing on a machine that does other things too: variants take turns, and medians are compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds for one call."""

    median: float
    p20: float
    p80: float


def take_turns(variants: Mapping[str, Callable[[], object]], seconds: float = 4.0) -> dict[str, Timing]:
    """Time each variant many times, one after the other in every round, for about ``seconds`` for each variant."""
    samples: dict[str, list[float]] = {name: [] for name in variants}
    for run in variants.values():
        run()  # warm up: allocations, thread pools
    deadline = time.perf_counter() + seconds * len(variants)
    rounds = 0
    while rounds < 5 or (time.perf_counter() < deadline and rounds < 200):
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            samples[name].append(time.perf_counter() - start)
        rounds += 1
    return {name: _summarize(values) for name, values in samples.items()}


def _summarize(values: list[float]) -> Timing:
    fifths = statistics.quantiles(values, n=5)
    return Timing(statistics.median(values), fifths[0], fifths[3])
