"""``torchcaps recipes``: what can be trained by name, what is in it, and a copy to change."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import print_table

__all__ = ["register"]

recipes_app = typer.Typer(
    name="recipes",
    help="List, show and copy the recipes that come with torchcaps.",
    no_args_is_help=True,
    epilog="Example: torchcaps recipes copy mnist-official mine.toml && torchcaps train mine.toml",
)
Name = Annotated[str, typer.Argument(metavar="RECIPE", help="A name of `torchcaps recipes list`, or a TOML file.")]


def register(app: typer.Typer) -> None:
    app.add_typer(recipes_app)


@recipes_app.command("list", epilog="Example: torchcaps recipes list")
def list_command() -> None:
    """Show every shipped recipe in one line."""
    from rich.table import Table

    from torchcaps.train import list_recipes, load_recipe

    table = Table("recipe", "what", "data", "length", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for name in list_recipes():
        recipe = load_recipe(name)
        training = recipe.training
        length = f"{training.steps:,} steps" if training.steps else f"{training.epochs:g} epochs"
        table.add_row(name, recipe.description, recipe.data.source, length)
    print_table(table)


@recipes_app.command("show", epilog="Example: torchcaps recipes show mnist-paper --resolved")
def show_command(
    name: Name,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Changes, shown with --resolved.")
    ] = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="Every key, with what it extends filled in.")] = False,
) -> None:
    """Print a recipe as it is written, or with every key filled in."""
    from torchcaps.train import load_recipe, recipe_text, save_recipe

    recipe = load_recipe(name, overrides or ())  # checked in either case
    typer.echo(save_recipe(recipe) if resolved or overrides else recipe_text(name), nl=False)


@recipes_app.command("copy", epilog="Example: torchcaps recipes copy mnist-official mine.toml")
def copy_command(
    name: Name,
    destination: Annotated[Path | None, typer.Argument(help="TOML file to write; RECIPE.toml unless told.")] = None,
) -> None:
    """Write a recipe to a file of your own, to change and train by."""
    from torchcaps.errors import TorchcapsError
    from torchcaps.eval.output import write_file
    from torchcaps.train import recipe_text

    text = recipe_text(name)
    target = destination or Path(f"{Path(name).stem}.toml")
    if target.suffix != ".toml":
        raise TorchcapsError(f"a recipe file ends in .toml, {target} does not; try {target.with_suffix('.toml')}")
    if target.exists():
        raise TorchcapsError(f"{target} exists already; give another name, or remove it first")
    write_file(target, text, option=None)
    typer.echo(f"wrote {target}\nnext: torchcaps train {shlex.quote(str(target))}")
