"""Pictures of ``docs/performance.md`` from the records.

python -m benchmarks.plots records/gpu-routing docs/images
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

from torchcaps.eval.figures.style import BLUE, GREEN, INK, MUTED, ORANGE, VERMILION, new_figure, styled, to_png

COLOURS = {"textbook": VERMILION, "eager": ORANGE, "compiled": GREEN, "fused": BLUE}
BASE = {"B": 128, "I": 1152, "J": 10, "D": 16, "P": 8, "R": 3}
PLAIN = "{x:g}"  # of ticks: figures read no formulas, and powers of ten would be ones
WHAT = {"B": "examples", "I": "lower capsules", "J": "upper capsules", "D": "dimensions", "R": "iterations"}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@styled
def cost_figure(rows: list[dict[str, str]]) -> Any:
    """How the time of votes and routing grows with each size, the others as in CapsNet."""
    figure, axes = new_figure(12, 2.9, len(WHAT))
    for axis, (letter, what) in zip(axes, WHAT.items(), strict=True):
        others = {key: value for key, value in BASE.items() if key != letter}
        lines: dict[str, dict[int, float]] = defaultdict(dict)
        for row in rows:
            if row["dtype"] == "bf16" and all(int(row[key]) == value for key, value in others.items()):
                lines[row["formulation"]][int(row[letter])] = float(row["both µs"]) / 1e3
        for name, colour in COLOURS.items():
            points = sorted(lines[name].items())
            axis.plot(*zip(*points, strict=True), marker="o", markersize=3, color=colour, label=name)
        axis.set(xscale="log", yscale="log", title=f"{letter}, {what}")
        ticks = sorted(lines["fused"])
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=45 if max(ticks) > 999 else 0)
        axis.yaxis.set_major_formatter(PLAIN)
        axis.minorticks_off()
        axis.grid(axis="y")
    axes[0].set_ylabel("forward + backward, ms")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    return figure


@styled
def roofline_figure(rows: list[dict[str, str]]) -> Any:
    """Each part of the step, forward and backward, below the two limits of the chip."""
    figure, axis = new_figure(7.5, 4.2)
    rate = float(rows[0]["limit TFLOP/s"])
    bandwidth = max(float(row[key]) for row in rows for key in ("GB/s", "limit GB/s"))  # the best that was seen
    bend = rate * 1e3 / bandwidth
    axis.plot([0.1, bend, 2e4], [0.1 * bandwidth / 1e3, rate, rate], color=INK, linewidth=1)
    axis.text(2e4, rate * 1.12, f"{rate:.0f} TFLOP/s", ha="right", fontsize=8)
    axis.text(0.5, 0.62 * bandwidth / 1e3, f"{bandwidth / 1e3:.1f} TB/s", rotation=38, fontsize=8, ha="center")
    for B, colour, marker in (("128", BLUE, "o"), ("512", VERMILION, "s")):
        chosen = [row for row in rows if row["B"] == B and not row["part"].endswith("forward")]
        axis.scatter([float(row["operations a byte"]) for row in chosen], [float(row["TFLOP/s"]) for row in chosen],
                     color=colour, marker=marker, s=22, label=f"batch {B}", zorder=3)  # fmt: skip
        for row in chosen if B == "512" else []:
            place = float(row["operations a byte"]), float(row["TFLOP/s"])
            left = row["part"].startswith("decoder")  # its right side is taken
            side = {"xytext": (-7, -3), "ha": "right"} if left else {"xytext": (7, -3), "ha": "left"}
            name = row["part"].removesuffix(", both")
            axis.annotate(name, place, textcoords="offset points", fontsize=7.5, color=INK, **side)
    axis.set(
        xscale="log", yscale="log", xlabel="operations for each byte that must move", ylabel="TFLOP/s", xlim=(0.2, 3e4)
    )
    for scale in (axis.xaxis, axis.yaxis):
        scale.set_major_formatter(PLAIN)
        scale.set_minor_formatter("")
    axis.grid(color=MUTED)
    axis.legend(loc="lower right")
    return figure


@styled
def loss_figure(rows: list[dict[str, str]]) -> Any:
    """The loss of 200 steps with and without the kernel, two seeds."""
    figure, axis = new_figure(6.5, 3.2)
    looks = {
        "fused seed 0": (BLUE, "-"),
        "plain seed 0": (ORANGE, "--"),
        "fused seed 1": (GREEN, "-"),
        "plain seed 1": (VERMILION, "--"),
    }
    for name, (colour, line) in looks.items():
        axis.plot(
            [int(r["step"]) for r in rows],
            [float(r[name]) for r in rows],
            line,
            color=colour,
            label=name,
            linewidth=1.1,
        )
    axis.set(yscale="log", xlabel="step", ylabel="training loss")
    axis.yaxis.set_major_formatter(PLAIN)
    axis.yaxis.set_minor_formatter("")
    axis.grid(axis="y")
    axis.legend()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    parser.add_argument("images", type=Path)
    options = parser.parse_args()
    figures = {"sweeps": cost_figure, "parts": roofline_figure, "loss_curve": loss_figure}
    for name, draw in figures.items():
        if not (options.records / f"{name}.csv").exists():
            print(f"no {name}.csv in {options.records}, so no picture of it")
            continue
        target = options.images / f"performance-{name.replace('_', '-')}.png"
        target.write_bytes(to_png(draw(read(options.records / f"{name}.csv"))))
        print("wrote", target)


if __name__ == "__main__":
    main()
