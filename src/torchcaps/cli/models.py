"""``torchcaps models``: the networks there are, and what one is made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import console, say

__all__ = ["register"]

models_app = typer.Typer(name="models", help="List networks and look into one.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    app.add_typer(models_app)


@models_app.command("list")
def list_command(
    pattern: Annotated[str, typer.Argument(metavar="[PATTERN]", help="Such as 'caps*'.")] = "*",
) -> None:
    """Show every network that a recipe or `torchcaps.create_model` takes by name.

    **Examples**

        torchcaps models list

        torchcaps models list "*cnn*"
    """
    import torch
    from rich.table import Table

    from torchcaps.errors import TorchcapsError
    from torchcaps.models import create_model, list_models

    names = list_models(pattern)
    if not names:
        raise TorchcapsError(f"no network matches {pattern!r}; there are {', '.join(list_models())}")
    table = Table("name", "pictures", "classes", "parameters", "what", box=None, pad_edge=False)
    table.columns[3].justify = "right"
    for name in names:
        with torch.device("meta"):  # counts without memory or start values
            model = create_model(name)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        what = (type(model).__doc__ or "").strip().splitlines()[0]
        shape = "×".join(map(str, model.image_shape))
        table.add_row(name, shape, str(model.num_classes), f"{parameters:,}", what)
    output = console()
    output.print(table, highlight=False, markup=False)
    output.print("\nPicture size and classes are those of the defaults; each network takes others.")


@models_app.command("info")
def info_command(
    name: Annotated[str, typer.Argument(metavar="NAME|MODEL", help="A name of `models list`, or a trained model.")],
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="For the memory of a training step.")] = 128,
) -> None:
    """Show layers, shapes, parameters, settings and the memory of a training step.

    **Examples**

        torchcaps models info capsnet

        torchcaps models info runs/demo --batch-size 64
    """
    from torchcaps.eval import load_model
    from torchcaps.models import create_model, list_models

    trained = Path(name).expanduser().is_dir() or name not in list_models()
    model = load_model(name) if trained else create_model(name)
    say(str(model.summary(batch_size, show=False)))
    say("\nsettings: " + ", ".join(f"{key}={value!r}" for key, value in model.settings.items() if value is not None))
