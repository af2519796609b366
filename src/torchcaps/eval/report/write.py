"""Put the sections of one or several runs on a page that needs no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from torchcaps._version import __version__
from torchcaps.eval.class_pairing import check_same_classes
from torchcaps.eval.report import markup
from torchcaps.eval.report.comparison import compare_runs, run_labels
from torchcaps.eval.report.measured import MeasuredRun
from torchcaps.eval.report.sections import Section, run_sections

__all__ = ["Report", "make_report"]


@dataclass(frozen=True)
class Report:
    """The page, and its figures by name for those who want them one by one."""

    page: str
    drawings: Mapping[str, Any]


def make_report(runs: Sequence[MeasuredRun], title: str = "") -> Report:
    """A page with a comparison where there are several runs, and the sections of each."""
    if not runs:
        raise ValueError("a report needs at least one run, got none")
    check_same_classes([measured.run for measured in runs])
    labels = run_labels(runs)
    several = len(runs) > 1
    parts: list[str] = []
    links: list[tuple[str, str]] = []
    drawings: dict[str, Any] = {}

    def add(section: Section, prefix: str, level: int) -> None:
        anchor = f"{prefix}{section.slug}"
        note = f"<p>{markup.escape(section.note)}</p>" if section.note else ""
        heading = f"<h{level}>{markup.escape(section.title)}</h{level}>"
        parts.append(f'<section id="{anchor}">{heading}{note}{section.body}</section>')
        drawings.update({f"{prefix}{name}": drawing for name, drawing in section.drawings.items()})
        if not several or level == 2:
            links.append((anchor, section.title))

    if several:
        add(compare_runs(runs), "", 2)
    for label, measured in zip(labels, runs, strict=True):
        prefix = f"{measured.slug}-" if several else ""
        if several:
            links.append((measured.slug, label))
            parts.append(f'<section id="{measured.slug}"><h2>{markup.escape(label)}</h2>{_headline(measured)}')
        else:
            parts.append(f"<section>{_headline(measured)}")
        for section in run_sections(measured):
            add(section, prefix, 3 if several else 2)
        parts.append(f"{_origin(measured)}</section>")
    title = title or (f"{len(runs)} capsule networks compared" if several else labels[0])
    return Report(_page(title, runs, links, parts), drawings)


def _page(title: str, runs: Sequence[MeasuredRun], links: list[tuple[str, str]], parts: list[str]) -> str:
    style = resources.files("torchcaps.eval.report").joinpath("report.css").read_text(encoding="utf-8")
    contents = "".join(f'<li><a href="#{anchor}">{markup.escape(name)}</a></li>' for anchor, name in links)
    evaluated = dict.fromkeys(f"{run.examples.name} ({run.examples.split_name})" for run in runs)
    about = f"Evaluated on {', '.join(evaluated)}."
    body = "\n".join(parts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="torchcaps {__version__}">
<title>{markup.escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<header><h1>{markup.escape(title)}</h1><p class="soft">{markup.escape(about)}</p></header>
<nav aria-label="Contents"><ul>{contents}</ul></nav>
<main>
{body}
</main>
<footer class="soft">Made by torchcaps {__version__}. Intervals are Wilson's at 95 %.</footer>
</body>
</html>
"""


def _headline(measured: MeasuredRun) -> str:
    result = measured.result
    error = result.error
    cards = [
        (
            f"{measured.examples.split_name.capitalize()} {result.error_name}",
            f"{error.percent:.2f} %",
            f"{error.count:,} of {error.total:,}; 95 % interval {error.interval_text}",
        )
    ]
    if result.is_multi_label:
        labels = result.label_error
        cards.append(("Labels missed", f"{labels.percent:.2f} %", f"{labels.count:,} of {labels.total:,}"))
    cards.append(("Parameters", f"{measured.parameters:,}", measured.model.architecture))
    seed = measured.run.seed
    steps = measured.run.training_lines[-1]["step"] if measured.run.training_lines else None
    cards.append(("Seed", "–" if seed is None else str(seed), "not recorded" if steps is None else f"{steps:,} steps"))
    drawn = result.mean_reconstruction_error
    if drawn is not None:
        cards.append(("Reconstruction error", f"{drawn:.2f}", "sum of squared pixel differences"))
    calibration = result.calibration.expected_error
    if calibration is not None:
        cards.append(("Calibration error", f"{calibration:.3f}", "length against share right"))
    items = "".join(
        f"<div{' class=main' if place == 0 else ''}><dt>{markup.escape(term)}</dt>"
        f"<dd>{markup.escape(value)}<small>{markup.escape(note)}</small></dd></div>"
        for place, (term, value, note) in enumerate(cards)
    )
    remarks = "".join(f"<li>{markup.escape(remark)}</li>" for remark in measured.examples.remarks)
    return (f'<ul class="remarks">{remarks}</ul>' if remarks else "") + f'<dl class="headline">{items}</dl>'


def _origin(measured: MeasuredRun) -> str:
    """How to get the same again; folded, since most readers come for the figures."""
    parts = {
        "Model": dict(measured.model.settings),
        "Recipe": measured.run.recipe,
        "Machine and versions": measured.run.facts,
    }
    return "".join(markup.details(name, markup.facts_table(facts)) for name, facts in parts.items() if facts)
