"""A measurement against something that is turned step by step: one line a network, with its spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchcaps.eval.figures.charts import DASHES, LINES
from torchcaps.eval.figures.style import new_figure, styled

__all__ = ["sweep_figure"]


@styled
def sweep_figure(curves: Mapping[str, Sequence[tuple[float, float, float]]], across: str, upwards: str) -> Any:
    """Lines through (place, mean, deviation), each with a band of ± one deviation."""
    figure, axes = new_figure(6.4, 3.6)
    for place, (name, points) in enumerate(curves.items()):
        xs, means, deviations = zip(*points, strict=True)
        colour = LINES[place % len(LINES)]
        low = [mean - deviation for mean, deviation in zip(means, deviations, strict=True)]
        high = [mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
        axes.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(xs, means, color=colour, linestyle=DASHES[place % len(DASHES)], marker="o", markersize=3, label=name)
    axes.set(xlabel=across, ylabel=upwards)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.legend()
    return figure
