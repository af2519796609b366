"""Recipes as files: the shipped ones by name, one's own by path, ``extends`` resolved."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from torchcaps._foreign import parse_toml, read_text, shortened, shown
from torchcaps.train.overrides import parse_overrides
from torchcaps.train.recipe import Recipe, RecipeError
from torchcaps.train.tables import merge_tables, recipe_from_table, recipe_to_table, to_toml

__all__ = ["changed_recipe", "list_recipes", "load_recipe", "recipe_header", "recipe_text", "save_recipe"]

_FOLDER = resources.files("torchcaps").joinpath("recipes")


def list_recipes() -> list[str]:
    """Names of the recipes that come with the package.

    >>> "mnist-official" in list_recipes()
    True
    """
    return sorted(file.name.removesuffix(".toml") for file in _FOLDER.iterdir() if file.name.endswith(".toml"))


def recipe_text(name_or_path: str | Path) -> str:
    """The TOML text of a recipe, with its comments."""
    return _read(str(name_or_path), Path())[0]


def recipe_header(name_or_path: str | Path) -> list[str]:
    """The comment lines at the top of a recipe: command, hardware, time, metric to expect."""
    lines = []
    for line in recipe_text(name_or_path).splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return lines


def load_recipe(name_or_path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """The recipe of this name or TOML file, with ``key=value`` overrides laid over it.

    >>> load_recipe("mnist-official", ["optimizer.lr=2e-3"]).optimizer.lr
    0.002
    """
    table = merge_tables(_resolved(str(name_or_path), Path(), ()), parse_overrides(overrides))
    table.setdefault("name", Path(name_or_path).stem)
    return recipe_from_table(table)


def changed_recipe(recipe: Recipe, overrides: Iterable[str]) -> Recipe:
    """The recipe with ``key=value`` overrides laid over it."""
    return recipe_from_table(merge_tables(recipe_to_table(recipe), parse_overrides(overrides)))


def save_recipe(recipe: Recipe) -> str:
    """The resolved recipe as TOML text, which :func:`load_recipe` reads back to an equal recipe."""
    return to_toml(recipe_to_table(recipe))


def _resolved(name: str, beside: Path, seen: tuple[str, ...]) -> dict[str, Any]:
    place = os.path.normpath(beside / name)  # b.toml here and b.toml in a folder below are two files
    if place in seen:
        raise RecipeError(f"recipes extend each other in a circle: {' → '.join((*seen, place))}")
    text, folder = _read(name, beside)
    try:
        table = parse_toml(text)
    except ValueError as error:
        raise RecipeError(f"the recipe {name} is no valid TOML: {error}") from error
    parent = table.pop("extends", None)
    if parent is None:
        return table
    if not isinstance(parent, str):
        raise RecipeError(f"extends in {name} must be the name of a recipe, got {shown(parent)}")
    base = _resolved(parent, folder, (*seen, place))
    for own in ("name", "description"):  # these belong to the parent alone
        base.pop(own, None)
    return merge_tables(base, table)


def _read(name: str, beside: Path) -> tuple[str, Path]:
    """Text of a recipe, and the folder in which the files that it extends are looked for."""
    if name.endswith(".toml"):
        path = beside / name
        try:
            if not path.exists():
                raise RecipeError(
                    f"there is no recipe file {path}; torchcaps recipes copy NAME {name} makes one of a shipped recipe"
                )
            return read_text(path), path.parent
        except (OSError, ValueError) as error:  # a name that no file can have
            raise RecipeError(f"the recipe {shortened(name)} cannot be read: {error}") from error
    known = list_recipes()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise RecipeError(
            f"no recipe is named {shown(name)}{hint} Shipped are {', '.join(known)}; a file of your own ends in .toml"
        )
    return _FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8"), beside
