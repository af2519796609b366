"""Ranges: what holds, what does not, and what the message says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

from torchcaps.ranges import Many, Number, Table, Whole, check_values


@dataclass
class Example:
    whole: Annotated[int, Whole(1, 1000)] = 1
    number: Annotated[float, Number(0, 1, below=True)] = 0.0
    optional: Annotated[float, Number(0, 1e6, above=True)] | None = None
    flag: bool = False
    text: str = ""
    plain: int = 0
    widths: Annotated[Sequence[int], Many(Whole(1, 9), 1, 3, " of widths")] = (1,)
    table: Annotated[Mapping[str, float], Table(Number())] | None = None
    anything: str | Mapping[str, Any] | Callable[..., Any] = ""
    other: object = None


@pytest.mark.parametrize(
    "values",
    [
        {"whole": 1000, "number": 0, "optional": None, "flag": True, "text": "é", "plain": -(2**62)},
        {"whole": np.int64(3), "number": np.float32(0.5), "optional": 1, "widths": [1, 2, 3], "table": {"a": 1e300}},
        {"widths": (9,), "anything": {"a": object()}, "other": object(), "unknown": object()},
    ],
)
def test_what_is_within(values):
    check_values(Example, values)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("whole", 1001, "a whole number from 1 to 1,000, got 1001"),
        ("whole", True, "a whole number from 1 to 1,000, got True"),
        ("whole", 1.0, "a whole number from 1 to 1,000, got 1.0"),
        ("whole", "1", "a whole number from 1 to 1,000, got '1'"),
        ("whole", None, "a whole number from 1 to 1,000, got None"),
        ("number", 1, "a number from 0 to below 1, got 1"),
        ("number", math.nan, "a number from 0 to below 1, got nan"),
        ("number", False, "a number from 0 to below 1, got False"),
        ("number", 10**400, "a number from 0 to below 1, got 1000"),
        ("optional", 0.0, "a number above 0 and at most 1,000,000, or nothing, got 0.0"),
        ("optional", math.inf, "got inf"),
        ("flag", 1, "true or false, got 1"),
        ("text", "x" * 200_000, "a text of at most 100,000 letters, got 'xxx"),
        ("anything", 3, "a text of at most 100,000 letters, or a table, or a function, got 3"),
        ("plain", 2**63, "a whole number, got 9223372036854775808"),
        ("widths", [1, 10], r"a list of widths: 1 to 3 entries, each a whole number from 1 to 9, got \[1, 10\]"),
        ("widths", "12", "a list of widths"),
        ("widths", [], r"got \[\]"),
        ("table", {"a": math.nan}, "a table, each value a finite number, or nothing, got {'a': nan}"),
    ],
)
def test_what_is_outside_is_named_with_its_range(key, value, words):
    with pytest.raises(ValueError, match=rf"^of mine: {key} must be .*{words}") as raised:
        check_values(Example, {key: value}, "of mine: ")
    assert len(str(raised.value)) < 300


def test_numbers_that_cannot_be_written_can_be_named():
    with pytest.raises(ValueError, match="got a number of thousands of digits"):
        check_values(Example, {"whole": 10**5000})


def test_annotations_that_are_only_there_for_a_type_checker_are_not_ranges():
    def own(size: "NotImported") -> None:  # noqa: F821, UP037
        pass

    check_values(own, {"size": -1})
