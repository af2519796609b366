"""Several runs beside each other: a table, a figure, and mean ± s.d. where runs differ in their seed alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from torchcaps.eval import figures
from torchcaps.eval.intervals import SeedSummary, summarize_seeds
from torchcaps.eval.report import markup
from torchcaps.eval.report.measured import MeasuredRun
from torchcaps.eval.report.sections import Section

__all__ = ["compare_runs", "run_labels", "seed_groups"]

HEAD = (
    "run",
    "model",
    "evaluated on",
    "seed",
    "parameters",
    "errors",
    "error",
    "95 % interval",
    "drawn",
    "calibration",
)


def compare_runs(runs: Sequence[MeasuredRun]) -> Section:
    """The section at the top of a page of several runs."""
    labels = run_labels(runs)
    rows = [_row(label, measured) for label, measured in zip(labels, runs, strict=True)]
    body = markup.table(
        HEAD,
        rows,
        "Error with Wilson's interval; drawn: mean sum of squared pixel differences; calibration: expected error.",
        text_columns=3,
    )
    drawing: Any = figures.intervals_figure(
        {label: measured.result.error for label, measured in zip(labels, runs, strict=True)}
    )
    spoken = "; ".join(
        f"{label}: {measured.result.error.percent:.2f} %" for label, measured in zip(labels, runs, strict=True)
    )
    body += markup.figure(
        figures.to_svg(drawing, "comparison", f"Errors of the runs. {spoken}"),
        "Intervals say how far a test set of this size can be trusted, not how far another seed would land.",
    )
    groups = seed_groups(runs)
    if groups:
        seed_rows = [(name, str(summary)) for name, summary in groups.items()]
        body += markup.table(
            ("recipe", "error in %, mean ± s.d."), seed_rows, "Runs that differ in their seed alone.", text_columns=2
        )
    return Section("comparison", f"{len(runs)} runs compared", "", body, {"comparison": drawing})


def run_labels(runs: Sequence[MeasuredRun]) -> list[str]:
    """Names of the runs; where two are equal, the folder above is named too."""
    names = [measured.run.name for measured in runs]
    labels = []
    for measured, name in zip(runs, names, strict=True):
        above = measured.run.folder.resolve().parent.name
        labels.append(f"{above}/{name}" if names.count(name) > 1 else name)
    return labels


def seed_groups(runs: Sequence[MeasuredRun]) -> dict[str, SeedSummary]:
    """Mean error in % for every recipe of which there are at least two seeds."""
    groups: dict[str, dict[int | None, MeasuredRun]] = defaultdict(dict)
    for measured in runs:
        if measured.recipe_without_seed is not None:
            groups[measured.recipe_without_seed][measured.run.seed] = measured
    summaries = {}
    for members in groups.values():
        if len(members) > 1:
            first = next(iter(members.values()))
            name = str(first.run.recipe.get("name") or first.run.name)
            seeds = ", ".join(str(seed) for seed in members)
            errors = [measured.result.error.percent for measured in members.values()]
            summaries[f"{name}, seeds {seeds}"] = summarize_seeds(errors)
    return summaries


def _row(label: str, measured: MeasuredRun) -> tuple[str, ...]:
    result = measured.result
    drawn, calibration = result.mean_reconstruction_error, result.calibration.expected_error
    return (
        label,
        measured.model.architecture,
        f"{measured.examples.name}, {measured.examples.split_name}",
        "?" if measured.run.seed is None else str(measured.run.seed),
        f"{measured.parameters:,}",
        f"{result.error.count:,} of {result.error.total:,}",
        f"{result.error.percent:.2f} %",
        result.error.interval_text,
        "–" if drawn is None else f"{drawn:.2f}",
        "–" if calibration is None else f"{calibration:.3f}",
    )
