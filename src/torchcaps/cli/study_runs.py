"""What ``reproduce`` and ``compare`` do alike: run a study in pieces, copy its records, write and show its table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import print_table, say, warn

if TYPE_CHECKING:
    from torchcaps.eval.tables import ResultTable
    from torchcaps.train.studies import Study, StudyOptions

__all__ = [
    "EXIT_UNFINISHED",
    "Budget",
    "Changes",
    "Device",
    "Quiet",
    "Records",
    "Seed",
    "TableOnly",
    "choose_seeds",
    "read_time",
    "run_pieces",
    "show_study",
]

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
EXIT_UNFINISHED = 3

Budget = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Stop after 8m, 90s or 1h; the same command goes on.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change the recipe of every run; may be given again."),
]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:1.")]
TableOnly = Annotated[bool, typer.Option("--table-only", help="Train nothing; the table of what is there.")]
Records = Annotated[
    Path | None, typer.Option("--records", help="Copy recipe, log and result of each finished run there.")
]
Seed = Annotated[
    list[int] | None,
    typer.Option(
        "--seed",
        metavar="N",
        min=0,
        help="Only this seed; may be given again. So several processes, each with seeds of its own, can share a study.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the table.")]


def read_time(text: str) -> float:
    """Seconds in ``90``, ``90s``, ``8m`` or ``1.5h``."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    try:
        seconds = float(number) * UNITS[unit]
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise typer.BadParameter(f"--budget takes a time above 0 such as 90s, 8m or 1h, not {text!r}")
    return seconds


def choose_seeds(count: int | None, single: list[int] | None) -> int | list[int] | None:
    """What ``--seeds`` or ``--seed`` asks for."""
    if count is not None and single:
        raise typer.BadParameter("--seeds N takes seeds 0 to N − 1, --seed N only that one; give one of the two")
    return sorted(set(single)) if single else count


def run_pieces(study: Study, options: StudyOptions, records: Path | None) -> bool:
    """Train and measure what is missing; true when nothing is left."""
    from torchcaps.eval.output import check_writable
    from torchcaps.train.overrides import check_one_length
    from torchcaps.train.studies import run_study

    check_one_length(options.changes)
    if records is not None:  # said before the work, not after it
        check_writable(records / "table.md", "--records")
    try:
        return run_study(study, options, warn)
    except KeyboardInterrupt:
        warn("stopped; the same command goes on")
        raise


def show_study(study: Study, folder: Path, records: Path | None) -> None:
    """Copy the records of finished runs where that is wanted, write the table beside the runs, and print it."""
    from torchcaps.train.studies import collect_records, study_table, write_study

    if records is not None:
        count = collect_records(study, folder, records)
        warn(f"{count} runs copied to {records}")
    for file in write_study(study, folder):
        warn(f"wrote {file}")
    table = study_table(study, folder)
    if sys.stdout.isatty():
        _print(table)
    else:
        say(table.markdown())


def _print(results: ResultTable) -> None:
    from rich.table import Table

    table = Table(*results.head, box=None, pad_edge=False)
    for row in results.rows:
        table.add_row(*row)
    print_table(table)
    say(f"\n{results.note}")
