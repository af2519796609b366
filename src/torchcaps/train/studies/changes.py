"""A picture of what single changes do: every seed of each cell, and a line where the cell is that they change."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from statistics import fmean

from torchcaps.eval.figures import changes_figure, to_png
from torchcaps.eval.output import write_file
from torchcaps.train.studies.definition import Cell, Study
from torchcaps.train.studies.results import read_finished

__all__ = ["PICTURE", "change_lines", "write_changes"]

PICTURE = "changes.png"


def write_changes(study: Study, root: Path) -> list[Path]:
    """``changes.png`` of the finished runs below a folder, once the base has one; needs matplotlib."""
    if not study.draws_changes or importlib.util.find_spec("matplotlib") is None:
        return []
    lines = change_lines(study, root)
    base = next(lines.get(_row(cell)) for cell in study.cells if cell.name == study.base)
    return [write_file(root / PICTURE, to_png(changes_figure(lines, fmean(base))))] if base else []


def change_lines(study: Study, root: Path) -> dict[str, list[float]]:
    """Errors in % of the finished seeds of each cell, by the words of its row; one without a seed has no line."""
    results = read_finished(root, [cell.name for cell in study.cells])
    return {
        _row(cell): [result.error.percent for result in results[cell.name]]
        for cell in study.cells
        if cell.name in results
    }


def _row(cell: Cell) -> str:
    return ": ".join(filter(None, cell.words.values()))
