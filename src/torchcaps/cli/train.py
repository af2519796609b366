"""``torchcaps train``: from a recipe to a run folder."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import to_stderr

if TYPE_CHECKING:
    from torchcaps.train import Recipe

__all__ = ["register"]

EXIT_INTERRUPTED = 130


def register(app: typer.Typer) -> None:
    app.command("train")(train)


def train(
    recipe: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A name of `torchcaps recipes list`, or a TOML file.")
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Changes, such as optimizer.lr=2e-3.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="In place of the recipe's.")] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:1.")] = "auto",
    name: Annotated[str | None, typer.Option("--name", help="The run folder is runs/NAME.")] = None,
    run_dir: Annotated[
        Path | None, typer.Option("--run-dir", help="The run folder itself, in place of a name.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")] = False,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="Folder to look for the data in.")] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", min=1, help="Length of the run, in place of the recipe's.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
) -> None:
    """Train a network by a recipe and leave a run folder behind. The test set is not read.

    Ctrl-C saves and stops; the same command with --resume goes on, exactly on the CPU. Several GPUs, or processes:
    torchrun --nproc-per-node 2 -m torchcaps train RECIPE; the batch stays the same in total.

    **Examples**

        torchcaps train demo

        torchcaps train mnist-official --seed 1 training.epochs=50 optimizer.lr=2e-3

        torchcaps train folder data.source=folder:my/pictures --name birds

        torchcaps train demo --resume
    """
    from torchcaps.train import default_run_dir, fit, load_recipe
    from torchcaps.train.distributed import process_rank
    from torchcaps.train.interrupt import TrainingInterruptedError
    from torchcaps.train.overrides import check_one_length

    if name is not None and run_dir is not None:
        raise typer.BadParameter("give --name or --run-dir, not both")
    changes = [*(overrides or ()), *([] if steps is None else [f"training.steps={steps}"])]
    changes += [] if seed is None else [f"seed={seed}"]
    check_one_length(changes)
    resolved: Recipe = load_recipe(recipe, changes)
    folder = run_dir or default_run_dir(resolved, name)
    speaks = process_rank() == 0  # one of several processes talks
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            result = fit(resolved, device=device, run_dir=folder, resume=resume, data_dir=data_dir, progress=not quiet)
    except TrainingInterruptedError as interruption:
        if speaks:
            to_stderr(f"\n{interruption}. Go on with the same command and --resume", typer.colors.YELLOW)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if not speaks:
        return
    record = result.record
    if record:  # a run that was finished already has taken no step
        typer.echo(
            f"{result.steps:,} steps, {result.seconds:.1f} s, {record['images_per_second']:,.0f} images/s at the end"
        )
        typer.echo(f"last training batches: loss {record['loss']:.4f}, error {100 * record['error']:.2f} %")
    typer.echo(f"run folder: {result.folder}\nnext: torchcaps evaluate {shlex.quote(str(result.folder))}")


def _show_warning(message: Warning | str, *_details: object, **_more: object) -> None:
    """A warning as one loud line instead of Python's own form."""
    to_stderr(f"WARNING: {message}", typer.colors.YELLOW, bold=True)
