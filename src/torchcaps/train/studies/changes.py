"""A picture of what single changes do: every seed of each cell, and a line where the cell is that they change."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from statistics import fmean

from torchcaps.eval.figures import changes_figure, to_png
from torchcaps.eval.output import write_file
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.results import read_results

__all__ = ["PICTURE", "change_lines", "write_changes"]

PICTURE = "changes.png"


def write_changes(study: Study, root: Path) -> list[Path]:
    """``changes.png`` of the finished runs below a folder, once the base has one; needs matplotlib."""
    if not study.draws_changes or importlib.util.find_spec("matplotlib") is None:
        return []
    lines = change_lines(study, root)
    base = next(cell for cell in study.cells if cell.name == study.base)
    name = ": ".join(word for word in base.words.values() if word)
    if name not in lines:
        return []
    return [write_file(root / PICTURE, to_png(changes_figure(lines, fmean(lines[name]))))]


def change_lines(study: Study, root: Path) -> dict[str, list[float]]:
    """Errors in % of the finished seeds of each cell, by the words of its row."""
    results = read_results(root, [cell.name for cell in study.cells])
    lines = {}
    for cell in study.cells:
        errors = [result.error.percent for result in results[cell.name] if not result.failure]
        if errors:
            lines[": ".join(word for word in cell.words.values() if word)] = errors
    return lines
