"""A picture of a study that measures checkpoints: the error along the training of each seed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from torchcaps.eval.figures import along_figure, to_png
from torchcaps.eval.output import write_file
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.protocols import STEP
from torchcaps.train.studies.results import StudyResult, read_finished

__all__ = ["PICTURE", "errors_by_step", "write_along"]

PICTURE = "along.png"


def write_along(study: Study, root: Path) -> list[Path]:
    """``along.png`` of the finished runs below a folder, where checkpoints were measured; needs matplotlib."""
    results = read_finished(root, [cell.name for cell in study.cells])
    curves = {
        f"{cell}, seed {run.seed}": points
        for cell, runs in results.items()
        for run in runs
        if (points := errors_by_step(run))
    }
    if not curves or importlib.util.find_spec("matplotlib") is None:
        return []
    return [write_file(root / PICTURE, to_png(along_figure(curves)))]


def errors_by_step(run: StudyResult) -> list[tuple[int, float]]:
    """(step, error in %) of each checkpoint that was measured, in the order of training."""
    names = [name for name in run.extras if name.startswith(STEP)]
    return sorted((int(name.removeprefix(STEP)), run.extra(name).percent) for name in names)
