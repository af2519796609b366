"""``torchcaps figures``: Figures 3, 4 and 5 of the paper from trained weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import DataDir, DataName, say, warn

__all__ = ["register"]

SHIPPED = {"3": "capsnet-mnist", "4": "capsnet-mnist", "5": "capsnet-multimnist"}


def register(app: typer.Typer) -> None:
    app.command("figures")(figures)


def figures(
    which: Annotated[list[str] | None, typer.Argument(metavar="3|4|5|all", help="Which; all unless told.")] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="A run folder or weights by name; else those that come along."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the PNG files.")] = Path("figures"),
    data: DataName = None,
    data_dir: DataDir = None,
    count: Annotated[
        int, typer.Option("--examples", min=20, help="Test examples that the model is asked about.")
    ] = 2000,
) -> None:
    """Draw the paper's figures: 3 reconstructions, 4 dimensions of the capsules, 5 overlapping digits told apart.

    Figures 3 and 4 need a network of single pictures (capsnet-mnist unless told), 5 one of pairs
    (capsnet-multimnist). `all` with --model draws those that fit it.

    **Examples**

        torchcaps figures 3 4 --model runs/demo-seed0 --out figures

        torchcaps figures 5 --model runs/pairs --examples 100

        torchcaps figures all --model runs/demo-seed0 --examples 200
    """
    from torchcaps.errors import TorchcapsError

    wanted = list(which or ["all"])
    unknown = [name for name in wanted if name not in ("all", *SHIPPED)]
    if unknown:
        raise TorchcapsError(f"there is no figure {unknown[0]!r} to draw; choose 3, 4, 5 or all")
    every = "all" in wanted
    numbers = sorted(SHIPPED if every else set(wanted))
    models = [model] if model is not None else sorted({SHIPPED[number] for number in numbers})
    for name in models:
        mine = [number for number in numbers if model is not None or SHIPPED[number] == name]
        _draw(name, mine, every, out, data, data_dir, count)


def _draw(
    name: str, numbers: list[str], only_fitting: bool, out: Path, data: str | None, data_dir: Path | None, count: int
) -> None:
    from torchcaps.eval import choose_examples, load_model, open_run, paper_figures
    from torchcaps.eval.drawings import drawing_model
    from torchcaps.eval.examples import check_fit
    from torchcaps.eval.figures import to_png
    from torchcaps.eval.output import write_file

    run = open_run(name)
    network = drawing_model(load_model(run))
    examples = choose_examples(run, network, data, "test", data_dir, count)
    check_fit(network, examples)
    for remark in examples.remarks:
        warn(remark)
    answers = paper_figures.answer(network, examples, count)
    makers = {
        "3": paper_figures.figure_reconstructions,
        "4": paper_figures.figure_dimensions,
        "5": paper_figures.figure_pairs,
    }
    for number in numbers:
        if only_fitting and (number == "5") != (examples.pairs is not None):
            continue
        file = write_file(out / f"figure-{number}.png", to_png(makers[number](network, examples, answers)))
        say(f"wrote {file}")
