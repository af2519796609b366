"""Between nested tables (what TOML holds) and the dataclasses of a recipe."""

from __future__ import annotations

import dataclasses
import difflib
import json
import typing
from collections.abc import Mapping
from typing import Any

from torchcaps._foreign import shortened, shown
from torchcaps.ranges import Number
from torchcaps.train.recipe import ModelSection, Recipe, RecipeError

__all__ = ["differing_keys", "flatten", "merge_tables", "recipe_from_table", "recipe_to_table", "to_toml", "toml_value"]

Table = dict[str, Any]


def recipe_from_table(table: Mapping[str, Any]) -> Recipe:
    """A checked recipe; an unknown key is an error that names the nearest one."""
    recipe: Recipe = _build(Recipe, table, "")
    return recipe


def recipe_to_table(recipe: Recipe) -> Table:
    """The recipe as nested tables, in the order of its fields."""
    table: Table = {}
    for part in dataclasses.fields(recipe):
        value = getattr(recipe, part.name)
        if isinstance(value, ModelSection):
            table[part.name] = {"name": value.name, **_plain(value.settings)}
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            section = {key.name: getattr(value, key.name) for key in dataclasses.fields(value)}
            table[part.name] = {key: _plain(entry) for key, entry in section.items()}
        else:
            table[part.name] = value
    return table


def merge_tables(base: Mapping[str, Any], change: Mapping[str, Any]) -> Table:
    """``change`` laid over ``base``, section by section; a list replaces a list.

    Two rules keep this natural: another model does not inherit the settings of the first, and steps replace epochs
    (or epochs steps) unless they are 0, since a run has one length.
    """
    merged: Table = {key: dict(value) if isinstance(value, Mapping) else value for key, value in base.items()}
    for key, value in change.items():
        if not isinstance(value, Mapping) or not isinstance(merged.get(key, {}), dict):
            merged[key] = value
            continue
        section = merged.get(key, {})
        if key == "model" and "name" in value and value["name"] != section.get("name", "capsnet"):
            section = {}
        if key == "training":
            for length, other in (("steps", "epochs"), ("epochs", "steps")):
                if value.get(length, 0) != 0 and other not in value:
                    section.pop(other, None)
        merged[key] = {**section, **value}
    return merged


def flatten(table: Mapping[str, Any], prefix: str = "") -> Table:
    """``{"a": {"b": 1}}`` → ``{"a.b": 1}``."""
    flat: Table = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def differing_keys(one: Recipe, other: Recipe) -> list[str]:
    """Dotted keys whose values differ between two recipes."""
    first, second = flatten(recipe_to_table(one)), flatten(recipe_to_table(other))
    return sorted(key for key in first.keys() | second.keys() if first.get(key) != second.get(key))


def to_toml(table: Mapping[str, Any]) -> str:
    """The table as TOML: plain keys first, then one section each."""
    lines = [f"{key} = {toml_value(value)}" for key, value in table.items() if not isinstance(value, Mapping)]
    for key, section in table.items():
        if isinstance(section, Mapping):
            lines += ["", f"[{key}]", *(f"{name} = {toml_value(value)}" for name, value in section.items())]
    return "\n".join(lines) + "\n"


def _build(kind: type[Any], table: Mapping[str, Any], path: str) -> Any:
    hints = typing.get_type_hints(kind)
    if kind is ModelSection:
        settings = {key: value for key, value in table.items() if key != "name"}
        return ModelSection(_checked(str, table.get("name", "capsnet"), "model.name"), settings)
    values: Table = {}
    for key, value in table.items():
        if key not in hints:
            near = difflib.get_close_matches(key, hints, n=1)
            hint = (
                f"did you mean {path}{near[0]}?" if near else f"known here: {', '.join(path + name for name in hints)}"
            )
            raise RecipeError(f"a recipe has no key {path}{shortened(key)}; {hint}")
        expected = hints[key]
        if dataclasses.is_dataclass(expected) and isinstance(expected, type):
            if not isinstance(value, Mapping):
                raise RecipeError(f"{path}{key} is a section with keys of its own, got {shown(value)}")
            values[key] = _build(expected, value, f"{path}{key}.")
        else:
            values[key] = _checked(expected, value, path + key)
    return kind(**values)


def _checked(expected: Any, value: Any, key: str) -> Any:
    """The value in the expected type; a whole number is a number, nothing else is converted."""
    if expected is float and Number().holds(value):
        return float(value)
    if typing.get_origin(expected) is tuple and isinstance(value, list | tuple):
        return tuple(_checked(typing.get_args(expected)[0], entry, key) for entry in value)
    wanted = typing.get_origin(expected) or expected
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", tuple: "a list"}
        raise RecipeError(f"{key} must be {names.get(wanted, 'a table')}, got {shown(value)}")
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def toml_value(value: Any) -> str:
    """A value as TOML writes it within a line.

    >>> toml_value({"name": "em", "standardize": True})
    '{name = "em", standardize = true}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON's escapes are TOML's, but one
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml_value(entry)}" for key, entry in value.items()) + "}"
    if not isinstance(value, int | float):
        raise RecipeError(
            f"a recipe cannot hold {shown(value)}; it takes texts, numbers, true, false, lists and tables"
        )
    return repr(value)
