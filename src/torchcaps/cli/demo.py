"""``torchcaps demo``: a capsule network at work in about a minute, on a CPU, with the digits inside the package."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from torchcaps.eval.report.measured import MeasuredRun
    from torchcaps.models import CapsNetOutput
    from torchcaps.train import RunResult

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the run, the report and the picture.")] = Path(
        "out/demo"
    ),
    steps: Annotated[int | None, typer.Option("--steps", help="Fewer training steps than the recipe.", min=1)] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the run.")] = 0,
) -> None:
    """Train a small CapsNet on the embedded digits, measure it, and look into its routing.

    **Examples**

        torchcaps demo

        torchcaps demo --steps 20 --out demo
    """
    from rich.console import Console
    from rich.markup import escape

    import torchcaps
    from torchcaps.eval.figures.style import matplotlib
    from torchcaps.eval.output import check_writable, write_file
    from torchcaps.eval.report import make_report
    from torchcaps.eval.report.measured import measure_run

    matplotlib()  # what would stop the end is said before the work
    folder = _free_folder(out)
    check_writable(folder)
    console = Console()
    console.rule("[bold]The network of the paper")
    console.print(str(torchcaps.create_model("capsnet").summary(show=False)), highlight=False, markup=False)

    console.rule("[bold]A small one, trained here and now on 1,000 digits")
    changes = [] if steps is None else [f"training.steps={steps}"]
    result = _train(changes, seed, folder)
    measured = measure_run(result.folder, slug="run1")
    error = measured.result.error
    console.print(
        f"[bold]{error.total - error.count} of {error.total}[/] digits that it was not trained on are right "
        f"([bold]{100 * (1 - error.share):.1f} %[/]) after {result.seconds:.0f} s of training.\n"
    )
    console.rule("[bold]One of them, looked at closely")
    picture = _look_closely(measured, result.folder / "routing.png", console)
    report = write_file(result.folder / "report.html", make_report([measured], "").page)
    for what, file in (
        ("\nWhere each position of the picture sends its votes:", picture),
        ("The whole report, to open in a browser:             ", report),
    ):
        console.print(f"{what} [bold]{escape(str(file))}[/]", soft_wrap=True)
    where = "" if shutil.which("torchcaps") else f" (the program is in {Path(sys.executable).parent})"
    console.print(f"\nNext{where}:", markup=False, highlight=False, soft_wrap=True)
    run = shlex.quote(str(result.folder))
    for command, what in (
        (f"tweak {run} --class 5 --out tweak.png", "what each dimension of a capsule means"),
        (f"predict {run} PICTURE.png", "a digit of your own"),
        ("train mnist-official", "the real thing, on a GPU"),
        ("--help", "everything else"),
    ):
        console.print(f"  [bold]torchcaps {escape(command)}[/]  [dim]{what}[/]", highlight=False, soft_wrap=True)


def _free_folder(out: Path) -> Path:
    """The first of run-1, run-2, … that does not exist: a demo never touches an earlier one."""
    number = 1
    while (out / f"run-{number}").exists():
        number += 1
    return out / f"run-{number}"


def _train(changes: list[str], seed: int, folder: Path) -> RunResult:
    """Train there; a disk that refuses is explained with the option of this command, not with those of ``train``."""
    from torchcaps.eval.output import disk_errors_explained
    from torchcaps.train import fit
    from torchcaps.train.checkpoint import CheckpointError
    from torchcaps.train.run_folder import RunFolderError

    with disk_errors_explained(folder):
        try:
            return fit("demo", changes, seed=seed, run_dir=folder)
        except (CheckpointError, RunFolderError) as error:
            raise error.__cause__ or error from None


def _look_closely(measured: MeasuredRun, picture_path: Path, console: Console) -> Path:
    import torch
    from rich.columns import Columns

    from torchcaps.cli.terminal import picture
    from torchcaps.data import sample_digits
    from torchcaps.eval.figures.routing import routing_figure
    from torchcaps.eval.figures.style import to_png
    from torchcaps.eval.output import write_file
    from torchcaps.models import CapsNet

    model, test = measured.model, sample_digits("test")
    assert isinstance(model, CapsNet)
    index = int(measured.right[7 % len(measured.right)]) if len(measured.right) else 0
    image = test.images[index].float() / 255
    with torch.no_grad():
        output = model(image.unsqueeze(0), return_trace=True)
        drawn = model.reconstruct(output.capsules, output.lengths.argmax(1))[0]
    colours = console.color_system is not None
    console.print(Columns([picture(image, colours), picture(drawn, colours)], padding=(0, 3)))
    console.print("     what it sees                  what its capsule draws\n")
    console.print(_lengths_table(output, int(test.labels[index])))
    return write_file(picture_path, to_png(routing_figure(model, image), dots_per_inch=110))


def _lengths_table(output: CapsNetOutput, true_class: int) -> Table:
    """Routing at work: the class capsules after each iteration; those that agree with their votes grow."""
    from rich.table import Table

    from torchcaps.cli.terminal import bar

    assert output.trace is not None
    lengths = output.trace.outputs[:, 0].norm(dim=-1)  # [R, J]
    table = Table(title="length of each class capsule after each routing iteration", box=None)
    table.add_column("class", justify="right")
    for iteration in range(len(lengths)):
        table.add_column(f"iteration {iteration + 1}", min_width=17)
    for j in range(lengths.shape[1]):
        cells = [f"{bar(float(length), 10):<10} {float(length):.2f}" for length in lengths[:, j]]
        table.add_row(str(j), *cells, style="bold" if j == true_class else "")
    return table
