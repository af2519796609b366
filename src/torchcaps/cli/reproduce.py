"""``torchcaps reproduce``: the paper's table, the ablation, the search for recipes, in pieces of a few minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import DataDir
from torchcaps.cli.study_runs import (
    EXIT_UNFINISHED,
    Budget,
    Changes,
    Device,
    Quiet,
    Records,
    Seed,
    TableOnly,
    choose_seeds,
    read_time,
    run_pieces,
    show_study,
)

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("reproduce")(reproduce)


def reproduce(
    study: Annotated[
        str,
        typer.Argument(metavar="STUDY", help="table1, ablation, affine, more, selection, writers or search."),
    ],
    cell: Annotated[
        list[str] | None, typer.Option("--cell", metavar="NAME", help="This cell, or a pattern; may be given again.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", min=1, help="Seeds 0 to N − 1 of each cell; 3 unless told, of selection 2.")
    ] = None,
    seed: Seed = None,
    budget: Budget = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the runs; runs/STUDY unless told.")] = None,
    data_dir: DataDir = None,
    changes: Changes = None,
    scale: Annotated[
        float, typer.Option("--scale", help="Length of every run times this; decay and warm-up follow.")
    ] = 1.0,
    device: Device = "auto",
    test_pairs: Annotated[
        int | None,
        typer.Option("--test-pairs", min=1, help="Pairs of MultiMNIST, or affine copies, to measure; all unless told."),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe", help="For search: mnist-best, mnist-open, multimnist-best or fashion.", show_default=False
        ),
    ] = None,
    table_only: TableOnly = False,
    records: Records = None,
    measure_again: Annotated[
        bool, typer.Option("--measure-again", help="Finished runs, too: after --test-pairs, on all of them.")
    ] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Else they are removed once a run is measured.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train and measure every cell of a study with several seeds, and write its table.

    A run is resumed where the last call's time ended, and a finished one is never repeated. table1, affine and more
    look at the test set, once a run; ablation and search choose on held-out digits and do not; selection looks at
    every checkpoint, to show what a choice on the test set would be worth. The table is written as Markdown, CSV and
    HTML, from the records alone. Exit status 3: something is left, for the time was over or an ensemble lacks members.

    A cell such as cifar10-ensemble trains nothing: it joins the first seeds of another cell by their added lengths,
    once they are finished, and is skipped before.

    **Examples**

        torchcaps reproduce table1 --cell mnist-best --seeds 5 --budget 8m

        torchcaps reproduce table1 --cell mnist-best --seed 3 --seed 4 --device cuda:1

        torchcaps reproduce table1 --cell "multimnist-*" --seeds 1 --test-pairs 100000 --scale 0.1

        torchcaps reproduce ablation --scale 0.2 --seeds 2 --budget 8m --out runs/ablation

        torchcaps reproduce search --recipe mnist-best --cell base --cell "dropout-*" --budget 8m

        torchcaps reproduce affine --seeds 3 --budget 8m

        torchcaps reproduce more --cell cifar10 --cell cifar10-ensemble --seeds 7 --budget 8m

        torchcaps reproduce table1 --table-only --out records/table1
    """
    from torchcaps.train.studies import StudyOptions, check_runs, get_study

    chosen = get_study(study, recipe)
    folder = out or Path("runs") / chosen.name
    finished = True
    if table_only:
        check_runs(chosen, folder)
    else:
        options = StudyOptions(
            out=folder,
            cells=tuple(cell or ()),
            seeds=choose_seeds(seeds, seed),
            budget=None if budget is None else read_time(budget),
            changes=tuple(changes or ()),
            scale=scale,
            device=device,
            data_dir=data_dir,
            limit=test_pairs,
            measure_again=measure_again,
            keep_checkpoints=keep_checkpoints,
            progress=not quiet,
        )
        finished = run_pieces(chosen, options, records)
    show_study(chosen, folder, records)
    if not finished:
        raise typer.Exit(EXIT_UNFINISHED)
