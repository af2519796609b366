"""A measurement against something that is turned step by step: one line a network, with its spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torchcaps.eval.figures.charts import DASHES, LINES
from torchcaps.eval.figures.style import new_figure, styled

__all__ = ["sweep_figure"]

FEW = 6  # names that fit into the drawing itself


@styled
def sweep_figure(curves: Mapping[str, Sequence[tuple[float, float, float]]], across: str, upwards: str) -> Any:
    """Lines through (place, mean, deviation), each with a band of ± one deviation."""
    many = len(curves) > FEW
    figure, axes = new_figure(8.4 if many else 6.4, 4.4 if many else 3.6)
    for place, (name, points) in enumerate(curves.items()):
        xs, means, deviations = zip(*points, strict=True)
        colour = LINES[place % len(LINES)]
        low = [mean - deviation for mean, deviation in zip(means, deviations, strict=True)]
        high = [mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
        axes.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
        dashes = DASHES[(place + place // len(LINES)) % len(DASHES)]  # a pair of its own for each of sixteen lines
        axes.plot(xs, means, color=colour, linestyle=dashes, marker="o", markersize=3, label=name)
    axes.set(xlabel=across, ylabel=upwards)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    if many:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3)
    else:
        axes.legend()
    return figure
