"""Text that anybody may have written: read within limits, and every way in which it can be wrong is a ValueError."""

from __future__ import annotations

import json
import re
import reprlib
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from torchcaps.errors import TorchcapsError

__all__ = [
    "json_lines",
    "parse_json",
    "parse_toml",
    "read_json_table",
    "read_text",
    "read_toml_table",
    "shortened",
    "shown",
]

MOST_BYTES = 1 << 26  # of a file that is read as a whole
MOST_LINE_BYTES = 1 << 20
MOST_TOML_LETTERS = 1 << 18
MOST_DOTS = 100  # in a line of TOML: the time of Python's parser grows with the square of the parts of a key
MOST_LEVELS = 20  # of lists and tables in each other; what walks them by recursion needs an end
LONE_SURROGATE = re.compile("[\ud800-\udfff]")

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 80


def shown(value: object) -> str:
    """The value as an error message quotes it: never longer than a line or two."""
    try:
        return _short.repr(value)
    except ValueError:  # Python refuses to write whole numbers of more than 4,300 digits
        return "a number of thousands of digits"


def shortened(text: str) -> str:
    """The text as an error message names it: in one line, and never longer than half of one."""
    return text if len(text) <= 60 and text.isprintable() else shown(text)


def parse_json(text: str | bytes) -> Any:
    """What JSON text holds; NaN, lone surrogates and more than ``MOST_LEVELS`` levels are refused, too."""
    try:
        value = json.loads(text, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("its lists and tables are nested too deep") from None
    _check_tree(value)
    return value


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text."""
    if len(text) > MOST_TOML_LETTERS:
        raise ValueError(f"it has {len(text):,} letters, more than {MOST_TOML_LETTERS:,}")
    if any(line.count(".") > MOST_DOTS for line in text.splitlines()):
        raise ValueError(f"a line of it has more than {MOST_DOTS} dots")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError("its lists and tables are nested too deep") from None
    _check_tree(table)
    return table


def read_text(file: Path) -> str:
    """The whole file; a :class:`TorchcapsError` where it cannot be read."""
    try:
        if not file.is_file():
            raise OSError("there is no such file")
        if (size := file.stat().st_size) > MOST_BYTES:
            raise ValueError(f"it has {size:,} bytes, more than {MOST_BYTES:,}")
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise TorchcapsError(f"{file} cannot be read: {error}") from error


def read_json_table(file: Path) -> dict[str, Any]:
    """The table that a JSON file holds; a :class:`TorchcapsError` where it holds none."""
    try:
        table = parse_json(read_text(file))
        if not isinstance(table, dict):
            raise ValueError(f"it must hold a table, got {shown(table)}")
    except ValueError as error:
        raise TorchcapsError(f"{file} is damaged: {error}") from error
    return table


def read_toml_table(file: Path) -> dict[str, Any]:
    """The tables that a TOML file holds; a :class:`TorchcapsError` where it is damaged."""
    try:
        return parse_toml(read_text(file))
    except ValueError as error:
        raise TorchcapsError(f"{file} is damaged: {error}") from error


def json_lines(file: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """The lines of a file, each with its table; with ``None`` where it is damaged."""
    try:
        with file.open("rb") as lines:
            while line := lines.readline(MOST_LINE_BYTES):
                yield line, _table_of(line)
    except OSError as error:
        raise TorchcapsError(f"{file} cannot be read: {error.strerror or error}") from error


def _table_of(line: bytes) -> dict[str, Any] | None:
    try:
        table = parse_json(line)
    except ValueError:
        return None
    return table if isinstance(table, dict) else None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _check_tree(value: object) -> None:
    """Texts can be written again, and levels can be counted."""
    level: list[object] = [value]
    for _ in range(MOST_LEVELS):
        inner: list[object] = []
        for part in level:
            if isinstance(part, str) and LONE_SURROGATE.search(part):
                raise ValueError("a text of it has half of a surrogate pair")
            if isinstance(part, dict):
                inner += [*part, *part.values()]
            elif isinstance(part, list):
                inner += part
        if not inner:
            return
        level = inner
    raise ValueError("its lists and tables are nested too deep")
