"""The curves of a study: error against a move, mean ± s.d. over the seeds of each cell, as CSV and as a figure."""

from __future__ import annotations

import csv
import importlib.util
import io
from pathlib import Path

from torchcaps.eval import SWEEPS, summarize_seeds
from torchcaps.eval.figures import sweep_figure, to_png
from torchcaps.eval.output import write_file
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.results import read_results

__all__ = ["banded", "sweep_points", "write_sweeps"]

UPWARDS = "error in %, mean ± s.d. over seeds"
Points = list[tuple[float, float, float | None]]


def sweep_points(study: Study, sweep: str, root: Path) -> dict[str, Points]:
    """(amount, mean error in %, s.d. or none for one seed) of each cell that has finished runs."""
    curves: dict[str, Points] = {}
    for cell, results in read_results(root, [cell.name for cell in study.cells]).items():
        points: Points = []
        names = {name for result in results for name in result.extras if name.startswith(f"{sweep} ")}
        for name in sorted(names, key=_place):
            shares = [result.extra(name).percent for result in results if name in result.extras]
            summary = summarize_seeds(shares)
            points.append((_place(name), summary.mean, summary.deviation))
        if points:
            curves[cell] = points
    return curves


def banded(study: Study, curves: dict[str, Points]) -> dict[str, list[tuple[float, float, float, float]]]:
    """The same with mean ± s.d., for a figure, by the name of the network.

    Every cell is there, with points or without, so that it looks the same in all figures of its study.
    """
    return {
        cell.words.get("network", cell.name): [
            (x, mean, mean - (s or 0), mean + (s or 0)) for x, mean, s in curves.get(cell.name, ())
        ]
        for cell in study.cells
    }


def write_sweeps(study: Study, root: Path, folder: Path) -> list[Path]:
    """``SWEEP.csv`` for every sweep that a finished run has and, with matplotlib, ``SWEEP.png``.

    A comparison has too many networks for curves that one could tell apart; its page draws them side by side.
    """
    files: list[Path] = []
    for name in study.sweeps:
        curves = sweep_points(study, name, root)
        if curves:
            files += _write(study, name, curves, folder)
    return files


def _write(study: Study, name: str, curves: dict[str, Points], folder: Path) -> list[Path]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("cell", SWEEPS[name].across.partition(",")[0], "error_percent_mean", "error_percent_deviation"))
    for cell, points in curves.items():
        writer.writerows((cell, f"{x:g}", f"{mean:.4f}", "" if s is None else f"{s:.4f}") for x, mean, s in points)
    files = [write_file(folder / f"{name}.csv", text.getvalue())]
    if not study.page and importlib.util.find_spec("matplotlib") is not None:
        figure = sweep_figure(banded(study, curves), SWEEPS[name].across, UPWARDS)
        files.append(write_file(folder / f"{name}.png", to_png(figure)))
    return files


def _place(name: str) -> float:
    return float(name.rpartition(" ")[2])
