"""Networks side by side: error beside what was published or before a change, costs, parents of a child."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from torchcaps.eval.figures.style import BLUE, MUTED, VERMILION, new_figure, styled

__all__ = ["BesidePublished", "changes_figure", "costs_figure", "errors_figure", "parents_figure", "published_figure"]

DOT: dict[str, Any] = {"color": BLUE, "marker": "o", "markersize": 5, "linestyle": "", "alpha": 0.6}
DIAMOND: dict[str, Any] = {
    "color": VERMILION,
    "marker": "D",
    "markersize": 5,
    "markerfacecolor": "white",
    "linestyle": "",
}
ROOM = 1.25  # right of the longest bar, for its number


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
        _from_zero(panel)
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
    _from_zero(axes)
    axes.set_xlabel("error in % on held-out examples")
    keys, names = [axes.plot([], [], **DOT)[0], without], ["a seed; the bar is their mean", "without a change"]
    figure.legend(keys, names, loc="outside upper center", ncols=2)
    return figure


@styled
def errors_figure(panels: Mapping[str, Mapping[str, Sequence[float]]]) -> Any:
    """A panel for each measurement, a line for each network: every seed as a dot, their mean as a bar.

    The networks are the same in all panels, a line is empty where one was not measured so; each panel has a scale of
    its own.
    """
    names = list(next(iter(panels.values())))
    figure, axes = new_figure(1.9 + 2.0 * len(panels), 1.0 + 0.27 * len(names), len(panels))
    for place, (panel, (title, errors)) in enumerate(zip(axes, panels.items(), strict=True)):
        for line, name in enumerate(names):
            _seeds(panel, errors[name], line)
        _names(panel, names if place == 0 else [""] * len(names))
        if not any(any(found) for found in errors.values()):
            panel.set_xlim(-0.04, 1)  # nothing is wrong; left alone, the scale would go far below 0
        panel.locator_params(axis="x", nbins=4)
        panel.set_title(title)
    figure.supxlabel("error in %; a dot is a seed, the bar their mean; each panel has a scale of its own", fontsize=9)
    return figure


def _seeds(axes: Any, errors: Sequence[float], place: float) -> None:
    if not errors:
        return
    mean = fmean(errors)
    axes.plot([mean, mean], [place - 0.21, place + 0.21], color=BLUE, linewidth=2)
    axes.plot(errors, [place] * len(errors), **DOT)


def _from_zero(axes: Any) -> None:
    """Errors from 0 on, with room beside the largest: the usual margin is a share of the values, which lie close."""
    axes.set_xlim(0, 1.03 * axes.get_xlim()[1])


def _names(axes: Any, names: Sequence[str]) -> None:
    """Lines from above to below, each with its name at the left."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)


@styled
def costs_figure(panels: Mapping[str, Mapping[str, float | None]]) -> Any:
    """A panel for each cost, such as images/s or memory, and a bar with its number for each network.

    The networks are the same in all panels; one whose cost is not known has a dash.
    """
    names = list(next(iter(panels.values())))
    figure, axes = new_figure(2.4 + 2.6 * len(panels), 0.8 + 0.27 * len(names), len(panels))
    drawn = zip(axes if len(panels) > 1 else [axes], panels.items(), strict=True)
    for place, (panel, (title, costs)) in enumerate(drawn):
        widths = [costs[name] or 0.0 for name in names]
        bars = panel.barh(range(len(names)), widths, height=0.62, color=BLUE, alpha=0.75)
        labels = ["–" if costs[name] is None else f"{costs[name]:,.0f}" for name in names]
        panel.bar_label(bars, labels, padding=3, fontsize=8)
        _names(panel, names if place == 0 else [""] * len(names))
        panel.set_xlim(0, max(*widths, 1.0) * ROOM)
        panel.set_title(title)
        panel.xaxis.set_visible(False)  # every bar has its number
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
