"""Text of strangers: every way to be wrong is one kind of error, and none takes long."""

from __future__ import annotations

import time

import pytest

from torchcaps._foreign import json_lines, parse_json, parse_toml, read_json_table, read_toml_table, shown
from torchcaps.errors import TorchcapsError

DEEP, VERY_DEEP, LONG = "[" * 30 + "]" * 30, "[" * 100_000, "9" * 5000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ("{", "property name"),
        ("NaN", "NaN is no number of JSON"),
        ('{"a": Infinity}', "Infinity is no number"),
        (DEEP, "nested too deep"),
        (VERY_DEEP, "nested too deep"),
        ('"\\ud800"', "half of a surrogate pair"),
        ('{"\\ud800": 1}', "half of a surrogate pair"),
        (LONG, "4300 digits"),
        (b"\xff", "can't decode"),
    ],
)
def test_json_that_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", "Expected '='"),
        ("a = ", "Invalid value"),
        (f"a = {DEEP}", "nested too deep"),
        (f"a = {VERY_DEEP}", "nested too deep"),
        (f"a = {LONG}", "4300 digits"),
        ("b = 1\n" * 50_000, "300,000 letters, more than 262,144"),
    ],
)
def test_toml_that_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        parse_toml(text)


@pytest.mark.parametrize("text", ["a." * 30_000 + "a = 1", "[" + "a." * 30_000 + "a]\n" + "b = 1\n" * 10_000])
def test_keys_of_many_parts_are_refused_at_once(text):
    """Python's parser takes the square of the parts: 18 s for these."""
    started = time.process_time()
    with pytest.raises(ValueError, match="more than 100 dots"):
        parse_toml(text)
    assert time.process_time() - started < 0.5


def test_what_is_right_is_read():
    assert parse_json('{"a": [1, -0.5, "\\u00e9\\ud83d\\ude00", null, true]}') == {"a": [1, -0.5, "é😀", None, True]}
    assert parse_toml('a.b = [1, 2.5]\n[c]\nd = "x.y.z"') == {"a": {"b": [1, 2.5]}, "c": {"d": "x.y.z"}}


@pytest.mark.parametrize("content", [b"\xff", b"[1]", b"3", b"{", b"a = [", b'{"a": NaN}'])
@pytest.mark.parametrize("read", [read_json_table, read_toml_table])
def test_a_damaged_file_is_named(read, content, tmp_path):
    file = tmp_path / "some.file"
    file.write_bytes(content)
    if read is read_toml_table and content == b"[1]":  # a section
        return
    with pytest.raises(TorchcapsError, match=r"some\.file (is damaged|cannot be read)"):
        read(file)
    with pytest.raises(TorchcapsError, match="cannot be read"):
        read(tmp_path)


def test_damaged_lines_are_none_and_long_ones_are_cut(tmp_path):
    file = tmp_path / "lines"
    file.write_bytes(b'{"a": 1}\n\xff\n[1]\n' + b"x" * 3_000_000 + b'\n{"a": 2}\n{"a": 3')
    tables = [table for _, table in json_lines(file)]
    assert [table for table in tables if table] == [{"a": 1}, {"a": 2}]
    assert b"".join(line for line, _ in json_lines(file)) == file.read_bytes()


def test_values_are_shown_in_a_line():
    assert shown([1, 32, 32]) == "[1, 32, 32]"
    assert all(
        len(shown(value)) < 200 for value in ("x" * 1000, list(range(1000)), {n: n for n in range(99)}, 10**4000)
    )
