"""``torchcaps models``: the networks there are, and what one is made of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import DataDir, Pairs, print_table, say, warn

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["register"]

models_app = typer.Typer(name="models", help="List networks and look into one.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(models_app)


@models_app.command("list")
def list_command(
    pattern: Annotated[str, typer.Argument(metavar="PATTERN", help="Such as 'caps*'.")] = "*",
) -> None:
    """Show every network that a recipe or `torchcaps.create_model` takes by name, and the trained weights there are.

    **Examples**

        torchcaps models list

        torchcaps models list "*cnn"
    """
    from fnmatch import fnmatch

    from rich.table import Table

    from torchcaps.errors import TorchcapsError
    from torchcaps.models.catalog import NETWORKS
    from torchcaps.models.shipped import list_pretrained

    networks = [network for network in NETWORKS if fnmatch(network.name, pattern)]
    trained = list_pretrained(pattern)
    if not networks and not trained:
        every = ", ".join([*(network.name for network in NETWORKS), *list_pretrained()])
        raise TorchcapsError(f"no network matches {pattern!r}; there are {every}")
    table = Table("name", "pictures", "classes", "parameters", "what", box=None, pad_edge=False)
    table.columns[3].justify = "right"
    for network in networks:
        shape = "×".join(map(str, network.image_shape))
        table.add_row(network.name, shape, str(network.num_classes), f"{network.parameters:,}", network.what)
    table.columns[0].no_wrap = True  # it is what one types
    if networks:
        print_table(table)
        say("\nPicture size and classes are those of the defaults; each network takes others.")
    if trained:
        print_table(_trained_table(trained))


def _trained_table(names: list[str]) -> Table:
    from rich.table import Table

    from torchcaps.models.shipped import read_card, shipped_folder

    table = Table("trained weights", "network", "parameters", "error", "recipe", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for name in names:
        folder = shipped_folder(name)
        facts = read_card(folder) if folder is not None else None
        if facts is None:
            table.add_row(name, "?", "", "no card that can be read", "")
            continue
        error = f"{facts['error_percent']:.2f} % ({facts['errors_stored']} of {facts['examples']:,}) on {facts['data']}"
        table.add_row(name, facts["architecture"], f"{facts['parameters']:,}", error, facts["recipe"])
    return table


@models_app.command("pack")
def pack_command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run folder with a finished model.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the weights are called, such as capsnet-mnist.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder to put them in; the package's own unless told.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option("--records", help="The cell's records, records/STUDY/CELL: the card shows all seeds.")
    ] = None,
    data_dir: DataDir = None,
    pairs: Pairs = 10_000,
) -> None:
    """Turn a run into shipped weights: 16-bit floats, measured against 32-bit ones on the test split, with a card.

    **Examples**

        torchcaps models pack runs/demo-seed0 capsnet-demo --out weights
    """
    from torchcaps.models.shipped import weights_folder
    from torchcaps.train.packing import pack_weights

    facts = pack_weights(run, name, out=out, records=records, data_dir=data_dir, pairs=pairs)
    for remark in facts.remarks:
        warn(remark)
    say(f"{facts.name}: {facts.stored} on {facts.data}")
    say(f"in 32 bits {facts.full.count:,} errors; {facts.changed:,} answers differ")
    say(f"wrote {(out or weights_folder()) / name}")


@models_app.command("info")
def info_command(
    name: Annotated[str, typer.Argument(metavar="NAME|MODEL", help="A name of `models list`, or a trained model.")],
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="For the memory of a training step.")] = 128,
) -> None:
    """Show layers, shapes, parameters, settings and the memory of a training step.

    **Examples**

        torchcaps models info capsnet

        torchcaps models info runs/demo-seed0 --batch-size 64
    """
    from torchcaps.errors import TorchcapsError
    from torchcaps.eval import load_model
    from torchcaps.models import create_model, list_models, list_pretrained

    known = [*list_models(), *list_pretrained()]
    trained = Path(name).expanduser().exists() or "/" in name or name in list_pretrained()
    if not trained and name not in known:
        raise TorchcapsError(f"there is no network {name!r}; choose from {', '.join(known)}, or give a trained model")
    model = load_model(name) if trained else create_model(name)
    say(str(model.summary(batch_size, show=False)))
    say("\nsettings: " + ", ".join(f"{key}={value!r}" for key, value in model.settings.items() if value is not None))
