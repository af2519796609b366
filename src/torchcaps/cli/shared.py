"""Arguments that several commands share, and the few lines that each of them would repeat."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = [
    "DataDir",
    "DataName",
    "ModelPath",
    "Pairs",
    "PngFile",
    "SplitName",
    "console",
    "print_table",
    "progress_lines",
    "read_class",
    "say",
    "to_stderr",
    "warn",
]

SECONDS_BETWEEN_LINES = 10.0
UNBROKEN = 10_000  # columns, more than any table has

ModelPath = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="A run folder, a model folder or checkpoint, shipped weights by name, or owner/name."
    ),
]
DataName = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="NAME",
        help="A name of `torchcaps data list`, folder:PATH, csv:FILE, npz:FILE, idx:FOLDER, or "
        "multimnist[:paper|:official]. Else: what the run's recipe says, else the embedded digits.",
    ),
]
DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Folder to look for the data in first.")]
SplitName = Annotated[str, typer.Option("--split", help="test, validation or train.")]
Pairs = Annotated[int, typer.Option("--pairs", min=1, help="How many pairs of MultiMNIST, evenly spaced.")]


def _png_name(path: Path) -> Path:
    if path.suffix.lower() not in ("", ".png"):
        raise typer.BadParameter(f"a PNG file is written, so its name should end in .png, not in {path.suffix}")
    return path


PngFile = Annotated[Path, typer.Option("--out", callback=_png_name, help="PNG file to write.")]


def console() -> Console:
    """Where tables go. A name such as ``[x]`` or ``:cat:`` is shown as it is, not read as markup.

    A file or another program has no width, so no line is broken there.
    """
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(markup=False, emoji=False, width=None if known else UNBROKEN)


def print_table(table: Table) -> None:
    """A table on stdout; what is too wide for the terminal goes on in the next line, nothing is cut."""
    for column in table.columns:
        column.overflow = "fold"
    console().print(table, highlight=False)


def say(text: str) -> None:
    """A line of the result, on stdout."""
    typer.echo(text)


def warn(text: str) -> None:
    """What the reader should know; on stderr, so that stdout stays clean for programs."""
    to_stderr(f"note: {text}", typer.colors.YELLOW)


def to_stderr(text: str, colour: str, bold: bool = False) -> None:
    """A line on stderr, in colour where it is a terminal and ``NO_COLOR`` is not set."""
    plain = bool(os.environ.get("NO_COLOR"))
    typer.secho(text, err=True, fg=None if plain else colour, bold=bold and not plain)


def progress_lines(what: str = "") -> Callable[[int, int], None]:
    """A watch that says every few seconds how many of how many (of what) are done; silent where it is over before."""
    last = time.monotonic()

    def watch(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            warn(f"{what}{done:,} of {total:,}")

    return watch


def read_class(name: str, classes: tuple[str, ...]) -> int:
    """The number of a class given by name or number; an unknown one is an error that lists the choices."""
    from torchcaps.errors import TorchcapsError

    if name in classes:
        return classes.index(name)
    if name.isdecimal() and int(name) < len(classes):
        return int(name)
    raise TorchcapsError(
        f"there is no class {name!r}; the model has {', '.join(classes)}, or use a number from 0 to {len(classes) - 1}"
    )
