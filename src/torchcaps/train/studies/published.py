"""A picture of a study beside what others report: every seed of each cell, and the published error."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from torchcaps.eval.figures import BesidePublished, published_figure, to_png
from torchcaps.eval.output import write_file
from torchcaps.train.studies.definition import Cell, Study
from torchcaps.train.studies.results import read_finished

__all__ = ["PICTURE", "cell_name", "published_lines", "write_published"]

PICTURE = "errors.png"


def write_published(study: Study, root: Path) -> list[Path]:
    """``errors.png`` of the finished runs below a folder, where figures were published and matplotlib is installed."""
    if study.published is None or importlib.util.find_spec("matplotlib") is None:
        return []
    panels = published_lines(study, root)
    return [write_file(root / PICTURE, to_png(published_figure(panels)))] if panels else []


def published_lines(study: Study, root: Path) -> dict[str, list[BesidePublished]]:
    """The lines of each data set, the first column of such a study; cells without a finished run have none."""
    assert study.published is not None
    results = read_finished(root, [cell.name for cell in study.cells])
    panels: dict[str, list[BesidePublished]] = {}
    for cell in study.cells:
        if cell.name in results:
            errors = [result.error.percent for result in results[cell.name]]
            mean, _, deviation = cell.words[study.published].partition(" ± ")
            published = None if mean == "–" else float(mean)
            line = BesidePublished(cell_name(study, cell), errors, published, float(deviation) if deviation else None)
            panels.setdefault(cell.words[study.columns[0]], []).append(line)
    return panels


def cell_name(study: Study, cell: Cell) -> str:
    """What a row says between its data set and the published figure, in one line.

    >>> from torchcaps.train.studies.table1 import TABLE1
    >>> [cell_name(TABLE1, cell) for cell in TABLE1.cells[:3]]
    ['baseline CNN', 'CapsNet, R = 1, no reconstruction', 'CapsNet, R = 1, reconstruction']
    """
    kinds = {"yes": "{0}", "no": "no {0}"}
    words = [(column, cell.words[column]) for column in study.columns[1:] if column != study.published]
    first, rest = words[0][1], [(column, word) for column, word in words[1:] if word != "–"]
    return ", ".join((first, *(kinds.get(word, "{0} = {1}").format(column, word) for column, word in rest)))
