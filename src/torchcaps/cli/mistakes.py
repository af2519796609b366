"""``torchcaps mistakes``: the pictures that a run, or the seeds of one recipe, get wrong, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import DataDir, DataName, PngFile, print_table, progress_lines, say, warn

if TYPE_CHECKING:
    from torchcaps.eval import Run

__all__ = ["register"]

PARTS_OF_A_RUN = ("config.json", "final", "checkpoints")  # of which a folder of several seeds has none


def register(app: typer.Typer) -> None:
    app.command("mistakes")(mistakes)


def mistakes(
    runs: Annotated[
        str,
        typer.Argument(
            metavar="RUN|FOLDER",
            help="A trained model, or the seeds of one cell, such as runs/table1/mnist-best.",
            show_default=False,
        ),
    ],
    out: PngFile = Path("mistakes.png"),
    count: Annotated[int, typer.Option("--examples", min=1, max=1000, help="The most pictures to draw.")] = 44,
    columns: Annotated[int, typer.Option("--columns", min=1, max=100, help="Pictures in a row.")] = 11,
    data: DataName = None,
    data_dir: DataDir = None,
    split: Annotated[str | None, typer.Option("--split", help="test, validation or train, for one run.")] = None,
) -> None:
    """Draw the pictures that a run gets wrong and name their files, the most confident mistake first.

    For the seeds of one recipe: the pictures that most of them get wrong first. What every seed gets wrong is no bad
    luck of its start values; often it is a picture that people do not agree on. The seeds come from `torchcaps
    reproduce` or `torchcaps compare`; only their results are read, and the data.

    **Examples**

        torchcaps mistakes runs/demo-seed0 --out wrong.png

        torchcaps mistakes runs/table1/mnist-best

        torchcaps mistakes records/table1/mnist-open --examples 22 --out always-wrong.png
    """
    from torchcaps.errors import TorchcapsError
    from torchcaps.eval import open_run
    from torchcaps.eval.output import check_writable

    check_writable(out)
    folder = Path(runs).expanduser()
    if not folder.is_dir() or any((folder / part).exists() for part in PARTS_OF_A_RUN):
        _of_one_run(open_run(runs), out, count, columns, data, data_dir, split or "test")
    elif data is not None or split is not None:
        raise TorchcapsError(
            f"--data and --split are for one run, but {runs} holds the seeds of a recipe, whose results say where they "
            "were measured; leave both out, or name one run"
        )
    else:
        _of_all_seeds(folder, out, count, columns, data_dir)


def _of_one_run(
    run: Run, out: Path, count: int, columns: int, data: str | None, data_dir: Path | None, split: str
) -> None:
    import torch
    from rich.table import Table

    from torchcaps.eval import choose_examples, load_model
    from torchcaps.eval.figures import captioned_pictures, to_png
    from torchcaps.eval.mistakes import list_mistakes
    from torchcaps.eval.output import write_file

    model = load_model(run)
    examples = choose_examples(run, model, data, split, data_dir)
    for remark in examples.remarks:
        warn(remark)
    result = examples.evaluate(model, progress_lines())
    wrong = list_mistakes(result, examples)
    say(f"{run.title} on {examples.name}, {examples.split_name}: {result.error}")
    if not wrong:
        say("nothing to draw")
        return
    shown = wrong[:count]
    table = Table("file" if shown[0].file else "example", "true → named", "score", box=None, pad_edge=False)
    for one in shown:
        table.add_row(one.name, one.change, f"{max(one.scores):.2f}")
    print_table(table)
    if len(shown) < len(wrong):
        say(f"… and {len(wrong) - len(shown):,} more; torchcaps evaluate {run.folder} --mistakes wrong.csv lists all")
    images = examples.images(torch.tensor([one.position for one in shown]))
    captions = ["\n→ ".join(one.change.split(" → ")) + "\n" + one.name.rsplit("/", 1)[-1] for one in shown]
    say(f"wrote {write_file(out, to_png(captioned_pictures(images, captions, columns)))}")


def _of_all_seeds(folder: Path, out: Path, count: int, columns: int, data_dir: Path | None) -> None:
    from torchcaps.eval.figures import captioned_pictures, to_png
    from torchcaps.eval.output import write_file
    from torchcaps.train.studies import find_mistakes

    found = find_mistakes(folder, data_dir)
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
