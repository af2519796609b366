"""A measurement against something that is moved step by step: one line a network, with its spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from torchcaps.eval.figures.charts import DASHES, LINES
from torchcaps.eval.figures.style import new_figure, styled

__all__ = ["along_figure", "sweep_figure", "sweeps_figure"]

FEW = 4  # names that fit into the drawing itself

Curves = Mapping[str, Sequence[tuple[float, float, float, float]]]  # place, value, and the band around it


@styled
def sweep_figure(curves: Curves, across: str, upwards: str) -> Any:
    """Lines through (place, value), each with a band from low to high; a curve without points only keeps its look."""
    many = sum(map(bool, curves.values())) > FEW
    figure, axes = new_figure(8.8 if many else 6.4, 4.4 if many else 3.6)
    _draw(axes, curves, across, upwards)
    if many:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), handlelength=3)
    else:
        axes.legend()
    return figure


@styled
def sweeps_figure(panels: Mapping[str, Curves], upwards: str) -> Any:
    """Several sweeps of the same networks side by side, by the words below each."""
    figure, axes = new_figure(3.4 * len(panels), 3.2, len(panels))
    for place, (panel, (across, curves)) in enumerate(
        zip(axes if len(panels) > 1 else [axes], panels.items(), strict=True)
    ):
        _draw(panel, curves, across, upwards if place == 0 else "")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=min(len(names), 4), handlelength=3)
    return figure


@styled
def along_figure(curves: Mapping[str, Sequence[tuple[int, float]]]) -> Any:
    """(step, error in %) along training, a line each; a ring around the lowest, a dot on the last.

    What lies above twice the median is the beginning of training, and is cut off.
    """
    figure, axes = new_figure(7.6, 3.2)
    for place, (name, points) in enumerate(curves.items()):
        steps, errors = zip(*points, strict=True)
        colour, lowest = LINES[place % len(LINES)], errors.index(min(errors))
        label = f"{name}: last {errors[-1]:.2f}, lowest {errors[lowest]:.2f}"
        axes.plot(steps, errors, color=colour, linestyle=DASHES[place % len(DASHES)], label=label)
        axes.plot(steps[-1:], errors[-1:], color=colour, marker="o", markersize=6)
        axes.plot([steps[lowest]], [errors[lowest]], color=colour, marker="o", markersize=9, markerfacecolor="none")
    axes.set_ylim(0, 2 * median(error for points in curves.values() for _, error in points))
    axes.set(xlabel="step", ylabel="error in %")
    axes.grid(axis="y")
    axes.legend()
    return figure


def _draw(axes: Any, curves: Curves, across: str, upwards: str) -> None:
    for place, (name, points) in enumerate(curves.items()):
        if not points:
            continue
        xs, values, low, high = zip(*points, strict=True)
        colour = LINES[place % len(LINES)]
        axes.fill_between(xs, low, high, color=colour, alpha=0.2, linewidth=0)
        dashes = DASHES[(place + place // len(LINES)) % len(DASHES)]  # a pair of its own for each of sixteen lines
        axes.plot(xs, values, color=colour, linestyle=dashes, marker="o", markersize=3, label=name)
    axes.set(xlabel=across, ylabel=upwards)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
