"""``torchcaps mistakes``: the pictures that the seeds of one recipe get wrong, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import DataDir, PngFile, say

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("mistakes")(mistakes)


def mistakes(
    runs: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The seeds of one cell, such as runs/table1/mnist-best.", show_default=False
        ),
    ],
    out: PngFile = Path("mistakes.png"),
    count: Annotated[int, typer.Option("--examples", min=1, max=1000, help="The most pictures to draw.")] = 44,
    columns: Annotated[int, typer.Option("--columns", min=1, max=100, help="Pictures in a row.")] = 11,
    data_dir: DataDir = None,
) -> None:
    """Draw the pictures that the seeds of one recipe get wrong, those that most of them get wrong first.

    What every seed gets wrong is no bad luck of its start values; often it is a picture that people do not agree on.
    Below each picture stand its true class, its place in the split and how many of the seeds get it wrong. The runs
    come from `torchcaps reproduce` or `torchcaps compare`; only their results are read, and the data.

    **Examples**

        torchcaps mistakes runs/table1/mnist-best

        torchcaps mistakes records/table1/mnist-open --examples 22 --out always-wrong.png
    """
    from torchcaps.eval.figures import captioned_pictures, to_png
    from torchcaps.eval.output import check_writable, write_file
    from torchcaps.train.studies import find_mistakes

    check_writable(out)
    found = find_mistakes(runs, data_dir)
    seeds = len(found.errors)
    errors = ", ".join(map(str, found.errors))
    say(f"{found.data}, {found.split}: {errors} of {found.examples:,} wrong")
    say(f"{len(found.positions)} are wrong in at least one of {seeds} seeds, {found.of_all_seeds} in all of them")
    if not found.positions:
        say("nothing to draw")
        return
    captions = [
        f"{name}\n{position}: {times} of {seeds} wrong"
        for position, name, times in zip(found.positions, found.names, found.times, strict=True)
    ]
    figure = captioned_pictures(found.images[:count].float() / 255, captions[:count], columns)
    say(f"wrote {write_file(out, to_png(figure))}")
