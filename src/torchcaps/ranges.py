"""What a value from a file or a command line may be: declared beside an argument, checked before it is used.

    conv_channels: Annotated[int, Whole(1, 65_536)] = 256

:func:`check_values` holds values against the annotations of a function or of a dataclass. A plain ``bool``, ``str``,
``int``, ``float``, ``Mapping`` or ``Callable`` is checked for its type; a union takes what one of its parts takes.
Other annotations take all.
"""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any

from torchcaps._foreign import shown

__all__ = [
    "MOST_SIDE",
    "Anything",
    "Chance",
    "Classes",
    "Count",
    "Factor",
    "Flag",
    "Fold",
    "Function",
    "ImageShape",
    "Iterations",
    "Many",
    "Nothing",
    "Number",
    "OneOf",
    "Percent",
    "Pixels",
    "Positive",
    "Range",
    "Share",
    "Size",
    "Table",
    "Text",
    "Whole",
    "Widths",
    "check_value",
    "check_values",
]

LARGEST = 2**63 - 1  # what a whole number of a tensor can be


class Range:
    """Which values are right; ``str`` says it in words."""

    def holds(self, value: object) -> bool:
        raise NotImplementedError


@dataclass(frozen=True)
class Whole(Range):
    """A whole number, true and false not among them."""

    least: int = -LARGEST
    most: int = LARGEST
    hint: str = ""

    def holds(self, value: object) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return whole and self.least <= int(value) <= self.most  # type: ignore[call-overload]

    def __str__(self) -> str:
        if (self.least, self.most) == (-LARGEST, LARGEST):
            return "a whole number"
        return f"a whole number from {self.least:,} to {self.most:,}{self.hint}"


@dataclass(frozen=True)
class Number(Range):
    """A finite number, whole ones among them, between two bounds or between none.

    ``above`` and ``below`` leave the bounds themselves out.
    """

    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    below: bool = False

    def holds(self, value: object) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        low = number > self.least if self.above else number >= self.least
        high = number < self.most if self.below else number <= self.most
        return math.isfinite(number) and low and high

    def __str__(self) -> str:
        if math.isinf(self.most):
            return "a finite number"
        least, most = f"{self.least:,.12g}", f"{self.most:,.12g}"
        if self.above:
            return f"a number above {least} and {'below' if self.below else 'at most'} {most}"
        return f"a number from {least} to {'below ' if self.below else ''}{most}"


@dataclass(frozen=True)
class Flag(Range):
    def holds(self, value: object) -> bool:
        return isinstance(value, bool)

    def __str__(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class Text(Range):
    most: int = 100_000

    def holds(self, value: object) -> bool:
        return isinstance(value, str) and len(value) <= self.most

    def __str__(self) -> str:
        return f"a text of at most {self.most:,} letters"


@dataclass(frozen=True)
class Many(Range):
    """A list whose entries are all of one range."""

    of: Range
    least: int = 0
    most: int = 1_000_000
    hint: str = ""

    def holds(self, value: object) -> bool:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            return False
        return self.least <= len(value) <= self.most and all(map(self.of.holds, value))

    def __str__(self) -> str:
        count = f"{self.least:,}" if self.least == self.most else f"{self.least:,} to {self.most:,}"
        return f"a list{self.hint}: {count} entries, each {self.of}"


@dataclass(frozen=True)
class Table(Range):
    """Names, and values that are all of one range."""

    of: Range

    def holds(self, value: object) -> bool:
        return isinstance(value, Mapping) and all(map(self.of.holds, value.values()))

    def __str__(self) -> str:
        return "a table" if self.of == Anything() else f"a table, each value {self.of}"


@dataclass(frozen=True)
class Function(Range):
    def holds(self, value: object) -> bool:
        return callable(value)

    def __str__(self) -> str:
        return "a function"


@dataclass(frozen=True)
class Nothing(Range):
    def holds(self, value: object) -> bool:
        return value is None

    def __str__(self) -> str:
        return "nothing"


@dataclass(frozen=True)
class Anything(Range):
    def holds(self, value: object) -> bool:
        return True

    def __str__(self) -> str:
        return "anything"


@dataclass(frozen=True)
class OneOf(Range):
    parts: tuple[Range, ...]

    def holds(self, value: object) -> bool:
        return any(part.holds(value) for part in self.parts)

    def __str__(self) -> str:
        return ", or ".join(map(str, self.parts))


Size = Annotated[int, Whole(1, 65_536)]  # channels, types, dimensions, pixels
Classes = Annotated[int, Whole(1, 1_000_000)]
ImageShape = Annotated[tuple[int, int, int], Many(Whole(1, 65_536), 3, 3, " (channels, height, width)")]
Widths = Annotated[Sequence[int], Many(Whole(1, 1_000_000), most=64, hint=" of widths, such as [32, 32, 64, 64]")]
Iterations = Annotated[int, Whole(1, 1000, "; the paper uses 3")]  # of a routing: each costs the time of the first
Chance = Annotated[float, Number(0, 1, below=True)]  # of dropout: never 1
Share = Annotated[float, Number(0, 1)]
Factor = Annotated[float, Number(-1e6, 1e6)]
Positive = Annotated[float, Number(0, 1e6, above=True)]
Count = Annotated[int, Whole(0, 10**12)]  # of steps, examples, parameters
Fold = Annotated[int, Whole(0, 1_000_000)]
MOST_SIDE = 4096  # of a picture, in pixels
Pixels = Annotated[int, Whole(0, MOST_SIDE, "; 0 leaves pictures as they are")]  # of a side
Percent = Annotated[float, Number(0, 100)]

PLAIN: dict[Any, Range] = {bool: Flag(), int: Whole(), float: Number(), str: Text(), types.NoneType: Nothing()}


def check_values(owner: Callable[..., Any], values: Mapping[str, Any], before: str = "") -> None:
    """Raise a ``ValueError`` with key, range and value where one of the values is not as ``owner`` declares it.

    Args:
        owner: a dataclass, or a function whose arguments the values are.
        before: what the message puts before the key, such as ``"model."``.

    Example:
        >>> from torchcaps.models import CapsNet
        >>> check_values(CapsNet.__init__, {"conv_channels": 10**9}, "model.")
        Traceback (most recent call last):
        ValueError: model.conv_channels must be a whole number from 1 to 65,536, got 1000000000
    """
    for key, range_ in _ranges_of(owner).items():
        if key in values:
            check_value(range_, values[key], before + key)


def check_value(range_: Range, value: object, key: str) -> None:
    """Raise a ``ValueError`` unless the value is in the range."""
    if not range_.holds(value):
        raise ValueError(f"{key} must be {range_}, got {shown(value)}")


@functools.lru_cache(maxsize=256)
def _ranges_of(owner: Callable[..., Any]) -> dict[str, Range]:
    try:
        hints = typing.get_type_hints(owner, include_extras=True)
    except NameError:  # a class of the user's own, with names that are only there for its type checker
        return {}
    hints.pop("return", None)
    return {key: _range_of(hint) for key, hint in hints.items()}


def _range_of(hint: Any) -> Range:
    if typing.get_origin(hint) is Annotated:
        declared = [part for part in typing.get_args(hint)[1:] if isinstance(part, Range)]
        return declared[0] if declared else _range_of(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = tuple(map(_range_of, typing.get_args(hint)))
        return Anything() if Anything() in parts else OneOf(parts)
    if typing.get_origin(hint) is Mapping:
        return Table(Anything())
    if typing.get_origin(hint) is Callable:
        return Function()
    return PLAIN.get(hint, Anything()) if isinstance(hint, type) else Anything()
