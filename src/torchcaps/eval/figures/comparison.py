"""Networks side by side: error beside what was published or before a change, against speed; parents of a child."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from torchcaps.eval.figures.style import BLUE, MUTED, VERMILION, new_figure, styled

__all__ = ["BesidePublished", "changes_figure", "errors_figure", "parents_figure", "published_figure", "speed_figure"]

DOT: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 5, "linestyle": "", "alpha": 0.6}
DIAMOND: dict[str, Any] = {
    "color": VERMILION,
    "marker": "D",
    "markersize": 5,
    "markerfacecolor": "white",
    "linestyle": "",
}
ROOM = 1.3  # beyond the slowest and the fastest


@dataclass(frozen=True)
class BesidePublished:
    """A line of :func:`published_figure`: errors in % of our seeds, and the published mean and deviation, if any."""

    name: str
    errors: Sequence[float]
    published: float | None = None
    deviation: float | None = None


@styled
def published_figure(panels: Mapping[str, Sequence[BesidePublished]]) -> Any:
    """A panel for each data set: every seed as a dot, their mean as a bar, the published error as a diamond above."""
    tallest = max(map(len, panels.values()))
    above = 1.0 if len(panels) > 1 else 1.2
    figure, axes = new_figure(4.9 * len(panels), above + 0.32 * tallest, len(panels))
    for panel, (title, lines) in zip(axes if len(panels) > 1 else [axes], panels.items(), strict=True):
        for place, line in enumerate(lines):
            if line.published is not None:
                panel.errorbar([line.published], [place - 0.18], xerr=[line.deviation or 0.0], **DIAMOND)
            _seeds(panel, line.errors, place + 0.16)
        _names(panel, [line.name for line in lines])
        panel.set_xlim(left=0)
        panel.set_title(title)
        panel.set_xlabel("test error in %")
    keys = [figure.axes[0].plot([], [], **DOT)[0], figure.axes[0].errorbar([], [], **DIAMOND)]
    names = ["a seed of ours; the bar is their mean", "published, ± its deviation where there is one"]
    figure.legend(keys, names, loc="outside upper center", ncols=2 if len(panels) > 1 else 1)  # one is too narrow
    return figure


@styled
def changes_figure(errors: Mapping[str, Sequence[float]], base: float) -> Any:
    """A line for each change: every seed as a dot, their mean as a bar; dashed, the error ``base`` without a change."""
    figure, axes = new_figure(7.6, 1.0 + 0.27 * len(errors))
    without = axes.axvline(base, color=MUTED, linestyle="--", linewidth=1)
    for place, found in enumerate(errors.values()):
        _seeds(axes, found, place)
    _names(axes, list(errors))
    axes.set_xlim(left=0)
    axes.set_xlabel("error in % on held-out examples")
    keys, names = [axes.plot([], [], **DOT)[0], without], ["a seed; the bar is their mean", "without a change"]
    figure.legend(keys, names, loc="outside upper center", ncols=2)
    return figure


@styled
def errors_figure(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Any:
    """A panel for each measurement, a line for each network: every seed as a dot, their mean as a bar.

    The networks are the same in all panels; each panel has a scale of its own.
    """
    names = list(next(iter(panels.values())))
    figure, axes = new_figure(1.9 + 2.0 * len(panels), 1.0 + 0.27 * len(names), len(panels))
    for place, (panel, (title, errors)) in enumerate(zip(axes, panels.items(), strict=True)):
        for line, name in enumerate(names):
            _seeds(panel, errors[name], line)
        _names(panel, names if place == 0 else [""] * len(names))
        panel.set_title(title)
    figure.supxlabel("error in %; a dot is a seed, the bar their mean; each panel has a scale of its own", fontsize=9)
    return figure


def _seeds(axes: Any, errors: Sequence[float], place: float) -> None:
    mean = fmean(errors)
    axes.plot([mean, mean], [place - 0.21, place + 0.21], color=BLUE, linewidth=2)
    axes.plot(errors, [place] * len(errors), **DOT)


def _names(axes: Any, names: Sequence[str]) -> None:
    """Lines from above to below, each with its name at the left."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)


@styled
def speed_figure(points: Mapping[str, tuple[float, float, float]]) -> Any:
    """(images/s, error in %, its deviation) of each; below and to the right is better.

    The names stand in a column, in the order of the errors, so that they do not cover each other.
    """
    figure, axes = new_figure(7.6, 1.6 + 0.22 * max(8, len(points)))
    ticker = importlib.import_module("matplotlib.ticker")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    speeds = [speed for speed, _, _ in points.values()]
    axes.set_xlim(min(speeds) / ROOM, max(speeds) * ROOM)  # also where there is one point only
    order = sorted(points.items(), key=lambda item: item[1][1])
    for place, (name, (speed, error, deviation)) in enumerate(order):
        axes.errorbar([speed], [error], yerr=[deviation], color=BLUE, marker="o", markersize=5, capsize=2, linewidth=1)
        axes.annotate(
            name,
            (speed, error),
            xytext=(1.04, (place + 0.5) / len(order)),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.5},
        )
    axes.set(xlabel="images a second in training, on a logarithmic scale", ylabel="error in %, mean ± s.d. over seeds")
    axes.grid()
    return figure


@styled
def parents_figure(tracks: Mapping[str, Sequence[float]], upper: int) -> Any:
    """Effective parents of a child from the first iteration (hollow) to the last (filled), one network a line."""
    figure, axes = new_figure(7.2, 0.9 + 0.28 * len(tracks))
    for place, numbers in enumerate(tracks.values()):
        lines = [place] * len(numbers)
        axes.plot(numbers, lines, color=BLUE, linewidth=1.2, marker="o", markersize=4, markerfacecolor="none")
        axes.plot(numbers[-1:], lines[-1:], color=BLUE, marker="o", markersize=6)
    _names(axes, list(tracks))
    axes.axvline(1, color=MUTED, linestyle="--", linewidth=1)
    axes.axvline(upper, color=MUTED, linestyle="--", linewidth=1)
    axes.set(xlabel=f"parents that a child serves: 1 is a tree, {upper} an even share to all")
    return figure
