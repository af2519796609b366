"""Curves of a training, the confusion matrix, calibration and coupling entropy."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from torchcaps.eval.figures.style import (
    BLUE,
    GREEN,
    INK,
    LETTER_INCHES,
    MUTED,
    ORANGE,
    SLANT,
    VERMILION,
    new_figure,
    short,
    short_names,
    styled,
)
from torchcaps.eval.intervals import Proportion
from torchcaps.eval.metrics import Calibration
from torchcaps.eval.two_classes import RocCurve

__all__ = [
    "calibration_figure",
    "confusion_figure",
    "curves_figure",
    "entropy_figure",
    "intervals_figure",
    "roc_figure",
]

LINES = (BLUE, VERMILION, GREEN, ORANGE)
DASHES = ("-", "--", ":", "-.")  # so that lines differ without colour, too
UNDECIDED = 0.01  # nats; a routing that stays this close to ln J is drawn as a flat line
LARGEST_MATRIX = 26  # classes; beyond this the cells are too small to hold a number
CELL_INCHES, FEWEST_INCHES = 0.42, 1.3  # of a class in the confusion matrix, of all where there are few
LONGEST_NAME = 28  # letters of a class; the middle of longer ones is left out
LONGEST_RUN = 40
Points = Sequence[tuple[float, float]]


@styled
def curves_figure(losses: Mapping[str, Points], errors: Mapping[str, Points]) -> Any:
    """Losses on a logarithmic scale on the left, errors in % on the right; each a list of (step, value)."""
    figure, panels = new_figure(8.4, 2.9, columns=2)
    for axes, series, label in ((panels[0], losses, "loss"), (panels[1], errors, "error in %")):
        for place, (name, points) in enumerate(series.items()):
            steps, values = zip(*points, strict=True) if points else ((), ())
            axes.plot(
                steps,
                values,
                color=LINES[place % len(LINES)],
                linestyle=DASHES[place % len(DASHES)],
                marker="o" if len(points) <= 12 else None,
                markersize=3,
                label=name,
            )
        axes.set_xlabel("step")
        axes.set_title(label)
        axes.grid(axis="y")
        if series:
            axes.legend()
        else:
            axes.text(0.5, 0.5, "not recorded", ha="center", va="center", color=MUTED, transform=axes.transAxes)
    positive = [value for points in losses.values() for _, value in points if value > 0]
    if positive and max(positive) > 3 * min(positive):
        _logarithmic(panels[0], positive)
    panels[1].set_ylim(bottom=0)
    return figure


@styled
def confusion_figure(confusion: Tensor, classes: Sequence[str]) -> Any:
    """Rows are the truth, columns what the model said; right in blue, wrong in vermilion, stronger when more often."""
    J = len(classes)
    rows = confusion.tolist()
    ticks = range(J) if J <= LARGEST_MATRIX else range(0, J, math.ceil(J / LARGEST_MATRIX))
    every = short_names(classes, LONGEST_NAME)
    names = [every[tick] for tick in ticks]
    slanted = max(map(len, names)) > 3
    cells, words = min(5.8, CELL_INCHES * J), LETTER_INCHES * max(map(len, names))
    below = SLANT * words if slanted else LETTER_INCHES
    figure, axes = new_figure(max(cells, FEWEST_INCHES) + words + 0.6, max(cells, FEWEST_INCHES) + below + 0.6)
    rectangle = importlib.import_module("matplotlib.patches").Rectangle
    largest_wrong = max((rows[i][j] for i in range(J) for j in range(J) if i != j), default=0) or 1
    for i, row in enumerate(rows):
        total = sum(row) or 1
        for j, count in enumerate(row):
            if not count:
                continue
            strength = count / total if i == j else count / largest_wrong
            colour = BLUE if i == j else VERMILION
            cell = rectangle((j - 0.47, i - 0.47), 0.94, 0.94, color=colour, alpha=0.12 + 0.38 * strength, lw=0)
            axes.add_patch(cell)
            if J <= LARGEST_MATRIX:
                axes.text(j, i, f"{count:.4g}", ha="center", va="center", fontsize=8, color=INK)
    axes.set_xticks(list(ticks), names, rotation=45 if slanted else 0, ha="right" if slanted else "center")
    if slanted:
        for label in axes.get_xticklabels():
            label.set_rotation_mode("anchor")  # the end of a name stands below its column
    axes.set_yticks(list(ticks), names)
    axes.set(
        xlim=(-0.5, J - 0.5), ylim=(J - 0.5, -0.5), xlabel="named by the model", ylabel="true class", aspect="equal"
    )
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    return figure


@styled
def calibration_figure(calibration: Calibration) -> Any:
    """Share that was right against mean confidence, a point a bin; its area grows with the number of predictions."""
    figure, axes = new_figure(3.9, 3.6)
    axes.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=1, label="perfectly calibrated")
    total = sum(part.count for part in calibration.bins)
    for part in calibration.bins:
        axes.plot([part.confidence] * 2, [part.confidence, part.accuracy], color=VERMILION, linewidth=1.2)
    axes.scatter(
        [part.confidence for part in calibration.bins],
        [part.accuracy for part in calibration.bins],
        s=[18 + 160 * part.count / total for part in calibration.bins],
        color=BLUE,
        zorder=3,
        label="bin of predictions",
    )
    axes.set(xlim=(0, 1.02), ylim=(0, 1.06), xlabel="confidence (length of the capsule)", ylabel="share that was right")
    axes.grid()
    axes.legend(loc="lower right", markerscale=0.6)
    return figure


@styled
def roc_figure(curve: RocCurve, positive: str) -> Any:
    """Positives found against negatives taken for positives, for every threshold; chance is the dashed diagonal."""
    figure, axes = new_figure(3.9, 3.6)
    axes.plot([0, 1], [0, 1], color=MUTED, linestyle="--", linewidth=1, label="chance")
    axes.plot(curve.false_positives.tolist(), curve.true_positives.tolist(), color=BLUE, label=f"area {curve.area:.4f}")
    axes.set(
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.04),
        xlabel=f"others taken for {short(positive, LONGEST_NAME)}",
        ylabel=f"share of {short(positive, LONGEST_NAME)} found",
    )
    axes.grid()
    axes.legend(loc="lower right")
    return figure


@styled
def entropy_figure(entropy: Tensor, num_classes: int) -> Any:
    """Coupling entropy after each iteration: mean and the middle 80 % of the pictures; ``entropy`` is ``[R, B]``."""
    figure, axes = new_figure(3.9, 3.6)
    iterations = list(range(1, len(entropy) + 1))
    low, high = (entropy.quantile(share, dim=1).tolist() for share in (0.1, 0.9))
    axes.vlines(iterations, low, high, color=BLUE, linewidth=6, alpha=0.35, label="middle 80 % of the pictures")
    axes.plot(iterations, entropy.mean(dim=1).tolist(), color=BLUE, marker="o", label="mean")
    axes.axhline(math.log(num_classes), color=MUTED, linestyle="--", linewidth=1)
    even = f"ln {num_classes}: all classes equal"
    across = axes.get_yaxis_transform()  # x as a share of the width, y in nats
    axes.text(0.98, math.log(num_classes), even, transform=across, ha="right", va="bottom", color=INK, fontsize=8)
    axes.set(xlabel="routing iteration", ylabel="entropy in nats", xticks=iterations)
    axes.set_xlim(0.6, len(entropy) + 0.4)
    span = max(math.log(num_classes) - min(low), UNDECIDED)
    axes.set_ylim(math.log(num_classes) - 1.05 * span, math.log(num_classes) + 0.12 * span)
    axes.grid(axis="y")
    axes.legend(loc="lower left")
    return figure


@styled
def intervals_figure(errors: Mapping[str, Proportion]) -> Any:
    """Error of each run in % with its Wilson interval, one below the other."""
    figure, axes = new_figure(7.2, 0.7 + 0.32 * len(errors))
    for place, error in enumerate(errors.values()):
        low, high = (100 * bound for bound in error.interval)
        axes.plot([low, high], [place, place], color=BLUE, linewidth=2.4, alpha=0.6, solid_capstyle="butt")
        axes.plot([error.percent], [place], color=BLUE, marker="o", markersize=6)
    axes.set_yticks(range(len(errors)), short_names(list(errors), LONGEST_RUN))
    axes.set_ylim(len(errors) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel("error in % and 95 % interval")
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    return figure


def _logarithmic(axes: Any, values: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers; those between the powers of ten too, where there are few powers."""
    ticker = importlib.import_module("matplotlib.ticker")
    axes.set_yscale("log")
    plain = ticker.FuncFormatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_major_formatter(plain)
    narrow = max(values) < 20 * min(values)
    axes.yaxis.set_minor_locator(ticker.LogLocator(subs=(2, 3, 5)))
    axes.yaxis.set_minor_formatter(plain if narrow else ticker.NullFormatter())
