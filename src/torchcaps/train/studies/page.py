"""The page of a comparison: its table and figures in one file, and the couplings of every layer, from records alone."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from torchcaps.eval.figures import costs_figure, errors_figure, parents_figure, to_png, to_svg
from torchcaps.eval.output import write_file
from torchcaps.eval.report import markup
from torchcaps.eval.tables import page
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.facts import fact_number
from torchcaps.train.studies.results import StudyResult, read_finished
from torchcaps.train.studies.table import study_table

__all__ = ["coupling_rows", "write_page"]

PAGE, COUPLINGS = "comparison.html", "couplings.csv"
HEAD = ("cell", "layer", "parents there are", "iteration", "entropy in nats", "parents of a child")
COSTS = ("images/s", "peak memory in MiB")
CAPTIONS = {
    "errors": "Error on the examples as they are, and as the columns of the table say.",
    "costs": "What training costs at the batch size of the table.",
    "parents": "How many parents a child serves after each iteration, for the class capsules; the last is filled.",
}


def write_page(study: Study, root: Path, folder: Path) -> list[Path]:
    """``comparison.html``, ``couplings.csv`` and, with matplotlib, the figures of :data:`CAPTIONS`."""
    results = read_finished(root, [cell.name for cell in study.cells])
    rows = coupling_rows(results)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(rows)
    files = [write_file(folder / COUPLINGS, text.getvalue())]
    drawings: dict[str, Any] = {}
    if results and importlib.util.find_spec("matplotlib") is not None:
        drawings = _draw(study, root, results)
        for name, drawing in drawings.items():
            files.append(write_file(folder / f"{name}.png", to_png(drawing)))
    table = study_table(study, root)
    body = [markup.table(table.head, table.rows, table.note, table.text_columns)]
    body += [markup.figure(to_svg(figure, name, CAPTIONS[name]), CAPTIONS[name]) for name, figure in drawings.items()]
    if rows:
        by_layer = markup.table(HEAD, rows, "Couplings of every capsule layer, means over seeds.", text_columns=2)
        body.append(markup.details("Couplings of every layer", by_layer))
    return [*files, write_file(folder / PAGE, page(study.title, body))]


def coupling_rows(results: Mapping[str, Sequence[StudyResult]]) -> list[tuple[str, ...]]:
    """A row for each cell, layer and iteration, means over the seeds."""
    rows: list[tuple[str, ...]] = []
    for cell, runs in results.items():
        for layer, first in runs[0].couplings.items():
            found = [run.couplings[layer] for run in runs]
            for iteration in range(len(first.entropy)):
                entropy = fmean(coupling.entropy[iteration] for coupling in found)
                parents = fmean(coupling.parents[iteration] for coupling in found)
                numbers = (str(first.upper), str(iteration + 1), f"{entropy:.4f}", f"{parents:.4f}")
                rows.append((cell, layer, *numbers))
    return rows


def _draw(study: Study, root: Path, results: Mapping[str, Sequence[StudyResult]]) -> dict[str, Any]:
    tracks, upper = {}, 1
    for cell, runs in results.items():
        layers = [list(run.couplings.values())[-1] for run in runs if run.couplings]
        if layers:
            tracks[cell] = [fmean(numbers) for numbers in zip(*(layer.parents for layer in layers), strict=True)]
            upper = max(upper, layers[0].upper)
    panels = {"as they are": {cell: [run.error.percent for run in runs] for cell, runs in results.items()}}
    for name in study.extras:
        measured_so = {
            cell: [run.extra(name).percent for run in runs if name in run.extras] for cell, runs in results.items()
        }
        if any(measured_so.values()):
            panels[name] = measured_so
    drawings = {"errors": errors_figure(panels)}
    costs = {fact: {cell: fact_number(fact, runs, root) for cell, runs in results.items()} for fact in COSTS}
    measured = {fact: numbers for fact, numbers in costs.items() if any(numbers.values())}
    if measured:
        drawings["costs"] = costs_figure(measured)
    if tracks:
        drawings["parents"] = parents_figure(tracks, upper)
    return drawings
