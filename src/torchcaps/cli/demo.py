"""A capsule network at work in about a minute, on a CPU, with the digits inside the package."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from torchcaps.models import CapsNet, CapsNetOutput

__all__ = ["demo", "register"]


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    steps: Annotated[int, typer.Option(help="Training steps of 50 digits.", min=1)] = 400,
    out: Annotated[Path, typer.Option(help="Folder for the picture.")] = Path("out/demo"),
) -> None:
    """Train a small CapsNet on the embedded digits and look into its routing.

    **Examples**

        torchcaps demo

        torchcaps demo --steps 100 --out /tmp/demo
    """
    import torch
    from rich.columns import Columns
    from rich.console import Console

    import torchcaps
    from torchcaps import data, models
    from torchcaps.cli.terminal import picture
    from torchcaps.eval.routing_picture import save_routing_picture

    console = Console()
    console.rule("[bold]The network of the paper")
    console.print(str(torchcaps.create_model("capsnet").summary(show=False)), highlight=False, markup=False)

    console.rule("[bold]A small one, trained here and now on 1,000 digits")
    torch.manual_seed(0)
    model = models.CapsNet(conv_channels=64, primary_types=8)
    _train(model, steps, console)
    test = data.sample_digits("test")
    images = test.images.float() / 255
    with torch.no_grad():
        predicted = model.eval()(images).lengths.argmax(1)
    right = predicted == test.labels
    console.print(f"[bold]{int(right.sum())} of {len(test)}[/] digits that it never saw are right.\n")

    console.rule("[bold]One of them, looked at closely")
    index = int(right.nonzero()[7 % int(right.sum())])
    with torch.no_grad():
        result = model(images[index : index + 1], return_trace=True)
        drawn = model.reconstruct(result.capsules, predicted[index : index + 1])[0]
    console.print(Columns([picture(images[index]), picture(drawn)], padding=(0, 3)))
    console.print("     what it sees                  what its capsule draws\n")
    console.print(_lengths_table(result, int(test.labels[index])))
    path = save_routing_picture(model, images[index], out / "routing.png")
    console.print(f"\nWhere each position sends its votes, as a picture: [bold]{path}[/]")
    console.print("Next: ten lines of Python in README.md, or  .venv/bin/torchcaps --help")


def _train(model: CapsNet, steps: int, console: Console) -> None:
    import torch
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from torchcaps import data

    shift = data.augment.build([{"name": "shift", "pixels": 2}])
    loader = data.Loader(data.sample_digits("train"), batch_size=50, augment=shift)
    loss = model.make_loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, total_iters=steps)
    batches = itertools.islice(itertools.chain.from_iterable(itertools.repeat(loader)), steps)
    columns = (TextColumn("training"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=steps)
        for batch in batches:
            out = model(batch.images)
            terms = loss(out.lengths, batch.labels, model.reconstruct(out.capsules, batch.labels), batch.images)
            optimizer.zero_grad()
            terms.total.backward()
            optimizer.step()
            schedule.step()
            progress.update(task, advance=1, description=f"loss {terms.total.item():.4f}")


def _lengths_table(result: CapsNetOutput, true_class: int) -> Table:
    """Routing at work: the class capsules after each iteration; what agrees grows, what does not shrinks."""
    from rich.table import Table

    from torchcaps.cli.terminal import bar

    assert result.trace is not None
    lengths = result.trace.outputs[:, 0].norm(dim=-1)  # [R, J]
    entropy = result.trace.entropy()[:, 0]
    table = Table(title="length of each class capsule after each routing iteration", box=None)
    table.add_column("class", justify="right")
    for r in range(len(lengths)):
        table.add_column(f"iteration {r + 1}", min_width=17)
    for j in range(lengths.shape[1]):
        cells = [f"{bar(float(lengths[r, j]), 10):<10} {lengths[r, j]:.2f}" for r in range(len(lengths))]
        table.add_row(str(j), *cells, style="bold" if j == true_class else "")
    table.add_row("", *(f"entropy {value:.4f}" for value in entropy), style="dim")
    return table


if __name__ == "__main__":
    typer.run(demo)
