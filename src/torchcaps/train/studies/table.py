"""The table of a study, from the records of its runs alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchcaps.eval import SeedSummary, difference_of_means, summarize_seeds
from torchcaps.eval.tables import ResultTable
from torchcaps.train.studies.definition import Cell, Study
from torchcaps.train.studies.facts import fact_text
from torchcaps.train.studies.overridden import other_lengths, overridden_keys
from torchcaps.train.studies.results import StudyResult, read_results

__all__ = ["study_table"]

MEASURED = ("error in %", "95 % interval", "seeds")
LENGTH = ("epochs", "errors of each seed")
SHARED = "wrong in every seed"
MADE = ("multimnist", "affnist-like")  # thousands of pairs, or dozens of copies, of every digit


def study_table(study: Study, root: Path) -> ResultTable:
    """A row a cell, with what its finished runs say; a cell without one has dashes, or no row (``study.lists_all``).

    The interval of several seeds is Student's of their mean, where they differ; that of one seed is Wilson's, of its
    own count. Examples that are made of the same digits fail together: Wilson's interval, which takes each for a draw
    of its own, would be far too narrow, and there is none.
    """
    results = read_results(root, [cell.name for cell in study.cells])
    base = _finished(results[study.base]) if study.base else []
    difference = ("difference", "95 % interval of it") if study.base else ()
    shown = [cell for cell in study.cells if study.lists_all or results[cell.name]]
    rows = [_row(study, cell, results[cell.name], base, root) for cell in shown]
    head = (*study.columns, *MEASURED, *difference, *study.extras, *study.facts, *LENGTH)
    shared = [_shared(study, _finished(results[cell.name])) for cell in shown]
    if any(text != "–" for text in shared):
        # Before the counts of the seeds, which are long and may break: a page breaks the last column only.
        head = (*head[:-1], SHARED, head[-1])
        rows = [(*row[:-1], text, row[-1]) for row, text in zip(rows, shared, strict=True)]
    note = study.note + _warning([result for found in results.values() for result in found])
    for times, cells in other_lengths(study, root).items():
        note += f" Trained {times} times as long as the study says: {', '.join(cells)}."
    overridden = overridden_keys(study, root)
    if overridden:
        note += f" Changed by --set: {', '.join(overridden)}."
    return ResultTable(study.title, head, rows, note, text_columns=len(study.columns))


def _finished(results: Sequence[StudyResult]) -> list[StudyResult]:
    return [result for result in results if not result.failure]


def _row(
    study: Study, cell: Cell, results: Sequence[StudyResult], base: Sequence[StudyResult], root: Path
) -> tuple[str, ...]:
    words = tuple(cell.words.get(column, "") for column in study.columns)
    finished = _finished(results)
    failed = len(results) - len(finished)
    count = f"{len(finished)}" + (f", {failed} failed" if failed else "")
    if not finished:
        empty = "failed" if failed else "–"
        others = ("–",) * (len(study.extras) + len(study.facts) + (2 if study.base else 0))
        return (*words, empty, "–", count, *others, "–", "–")
    summary = summarize_seeds([result.error.percent for result in finished])
    compared: tuple[str, ...] = ()
    if study.base:
        compared = ("–", "–") if cell.name == study.base or not base else _compared(summary, base)
    epochs = _range([result.epochs for result in finished])
    extras = tuple(_extra(name, finished) for name in study.extras)
    facts = tuple(fact_text(name, finished, root) for name in study.facts)
    return (
        *words,
        _mean(summary),
        _interval(summary, finished),
        count,
        *compared,
        *extras,
        *facts,
        epochs,
        _counts(finished),
    )


def _warning(results: Sequence[StudyResult]) -> str:
    samples = sorted({result.data for result in results if result.data.endswith("-sample")})
    if not samples:
        return ""
    return f" These runs used {', '.join(samples)}, a small sample: no figure here stands beside a published one."


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} … {high}"


def _counts(finished: Sequence[StudyResult]) -> str:
    """Errors of each seed; how many examples stands once, where it is the same for all."""
    if len({result.examples for result in finished}) > 1:
        return ", ".join(f"{result.errors} of {result.examples:,}" for result in finished)
    return f"{', '.join(str(result.errors) for result in finished)} of {finished[0].examples:,}"


def _shared(study: Study, finished: Sequence[StudyResult]) -> str:
    """How many examples all seeds of a row get wrong; nothing where each seed is measured on others."""
    found = [set(result.wrong) for result in finished if result.wrong is not None]
    if study.folds or len(found) < 2 or len(found) < len(finished):
        return "–"
    return str(len(set.intersection(*found)))


def _mean(summary: SeedSummary) -> str:
    return f"{summary.mean:.3f}" + ("" if summary.deviation is None else f" ± {summary.deviation:.3f}")


def _extra(name: str, finished: Sequence[StudyResult]) -> str:
    shares = [result.extra(name).percent for result in finished if name in result.extras]
    if not shares:
        return "–"
    some = f" ({len(shares)} of {len(finished)} seeds)" if len(shares) < len(finished) else ""
    return _mean(summarize_seeds(shares)) + some


def _interval(summary: SeedSummary, finished: Sequence[StudyResult]) -> str:
    if len(finished) == 1 and not finished[0].data.startswith(MADE):
        low, high = (100 * bound for bound in finished[0].error.interval)
    elif summary.interval is None:
        return "–"
    else:
        low, high = summary.interval
    return f"{max(0.0, low):.3f} … {min(100.0, high):.3f}"


def _compared(summary: SeedSummary, base: Sequence[StudyResult]) -> tuple[str, str]:
    """The difference of two means, and Welch's interval where both have several seeds that are not all equal."""
    difference, interval = difference_of_means(summary.values, [result.error.percent for result in base])
    text = f"{difference:+.3f}".replace("-", "−")
    if interval is None:
        return text, "–"
    return text, " … ".join(f"{bound:+.3f}".replace("-", "−") for bound in interval)
