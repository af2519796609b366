"""Mutated files for every reader, by the million: ``python -m tests.soak --inputs 1000000 --seed 0``.

Ends with 1 when an input crashes its reader, keeps it for more than 5 s, takes more than 1 GB, or raises what
``allowed.py`` does not list. Such inputs are saved; ``--only NAME --replay FILE`` reads one again, without limits.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: threads do not survive a fork
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from tests.soak.harness import Tally, soak
from tests.soak.target import Target


def all_targets() -> tuple[Target, ...]:
    """``TARGETS`` of every file ``targets_*.py`` beside this one."""
    files = sorted(Path(__file__).parent.glob("targets_*.py"))
    modules = [importlib.import_module(f"tests.soak.{file.stem}") for file in files]
    return tuple(target for module in modules for target in module.TARGETS)


def main(arguments: Sequence[str] | None = None) -> int:
    targets = all_targets()
    names = [target.name for target in targets]
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="over all targets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--save", type=Path, help="folder for the inputs of findings; a temporary one if left out")
    parser.add_argument("--replay", type=Path, help="one saved input, for the target of --only")
    options = parser.parse_args(arguments)
    chosen = [target for target in targets if not options.only or target.name in options.only]
    if options.replay:
        with tempfile.TemporaryDirectory() as scratch:
            print(chosen[0].read(options.replay.read_bytes(), Path(scratch)))
        return 0
    saved = options.save or Path(tempfile.gettempdir()) / f"soak-findings-{os.getpid()}"
    console = Console(width=None if sys.stdout.isatty() else 160)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, auto_refresh=False) as bar:  # no thread: children are forked
        task = bar.add_task("reading mutated inputs", total=options.inputs)

        def advanced(done: int) -> None:
            bar.update(task, completed=done, refresh=True)

        tallies = soak(chosen, options.inputs, options.seed, options.workers or 1, saved, advanced)
    console.print(_table(tallies))
    for name, tally in tallies.items():
        for what, indices in tally.findings.items():
            console.print(f"{name}: {len(indices)} × {what}", markup=False, highlight=False)
    found = sum(len(indices) for tally in tallies.values() for indices in tally.findings.values())
    console.print(f"{found} findings" + (f", saved in {saved}" if found else ""), highlight=False)
    return int(found > 0)


def _table(tallies: dict[str, Tally]) -> Table:
    table = Table("target", *("inputs", "read", "refused", "ms each", "slowest, ms", "findings"))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, tally in tallies.items():
        each = 1000 * tally.seconds / max(1, tally.inputs)
        found = sum(len(indices) for indices in tally.findings.values())
        numbers = (f"{tally.inputs:,}", f"{tally.read:,}", f"{tally.refused:,}")
        table.add_row(name, *numbers, f"{each:.2f}", f"{1000 * tally.slowest:.0f}", str(found))
    return table


if __name__ == "__main__":
    sys.exit(main())
