"""Damage that knows the format: a value of a JSON, TOML or safetensors file becomes one that no program wrote."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["joined", "mutate_json", "mutate_lines", "mutate_part", "mutate_safetensors", "mutate_toml", "parts_of"]

Mutator = Callable[[random.Random, bytes], bytes]

BOTH = """0 1 2 -1 3 7 10 100 1000 65536 100000 1000000000 1000000000000 9223372036854775807 9223372036854775808
 18446744073709551616 -9223372036854775809 0.0 -0.0 0.5 1.5 -0.5 1e-300 1e300 -1e300 "" "0" "1" "nan" "-1" "capsnet"
 "em" "positions" "same" "\\u0000" "\\n" "../../x" [] [0] [1] [-1] [1,28,28] [0.5,2] ["a"] [[]] [[[1]]] true
 false"""
JSON = (
    *BOTH.split(),
    "null",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    '"\\ud800"',
    "{}",
    '{"name":"em"}',
    '{"a":{"b":1}}',
)
TOML = (*BOTH.split(), "nan", "inf", "-inf", "{}", '{name="em"}', "{a.b=1}", "1979-05-27T07:32:00Z", "0xff", "1_000")
HEADERS = ("[data]", "[model]", "[[training]]", "[a.b]", f"[{'a.' * 40}b]", f"{'a.' * 3000}b = 1")


def _large(rng: random.Random) -> str:
    """Long numbers and texts, deep and wide lists; what few of the inputs get, since all of them would be slow."""
    return rng.choice(
        (
            "9" * 5000,
            "9" * 400,
            f'"{"x" * 100_000}"',
            "[" * 30 + "]" * 30,
            "[" * 2000 + "]" * 2000,
            f"[{'1,' * 50_000}1]",
            f"[{'[1,2],' * 100}[]]",
        )
    )


def _hostile(rng: random.Random, choices: Sequence[str]) -> str:
    return _large(rng) if rng.random() < 0.08 else rng.choice(choices)


def mutate_json(rng: random.Random, data: bytes) -> bytes:
    """One to three values or keys of a JSON text."""
    tree = json.loads(data)
    raw: dict[str, str] = {}
    for number in range(rng.choice((1, 1, 1, 2, 3))):
        holder, key = _place(rng, tree)
        if holder is None:
            return _hostile(rng, JSON).encode()
        what = rng.random()
        if what < 0.1:
            del holder[key]
        elif what < 0.2 and isinstance(holder, dict):
            holder[rng.choice(("", "x", "name", "step", "a" * 300, key + "s"))] = holder.pop(key)
        else:
            mark = f"@hostile{number}@"
            raw[f'"{mark}"'] = _hostile(rng, JSON)
            holder[key] = mark
    text = json.dumps(tree)
    for mark, value in raw.items():
        text = text.replace(mark, value)
    return text.encode()


def _place(rng: random.Random, tree: Any) -> tuple[Any, Any]:
    """A random container of a tree and a key of it; outer ones more often."""
    holder = tree
    while True:
        keys = (
            list(holder) if isinstance(holder, dict) else list(range(len(holder))) if isinstance(holder, list) else []
        )
        if not keys:
            return None, None
        key = rng.choice(keys)
        inner = holder[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.3:
            return holder, key
        holder = inner


def mutate_toml(rng: random.Random, data: bytes) -> bytes:
    """One to three lines of a TOML text."""
    lines = data.decode().splitlines()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.randrange(len(lines))
        found = re.match(r"([\w.]+) *= *", lines[place])
        key = found[1] if found else rng.choice(("x", "steps", "name", "size", "augment", "routing", "a.b", '""'))
        line = f"{key} = {_hostile(rng, TOML)}"
        what = rng.random()
        if what < 0.7:
            lines[place] = line
        elif what < 0.8:
            lines.insert(place, line)
        elif what < 0.9:
            lines[place] = rng.choice(HEADERS)
        else:
            del lines[place]
        lines = lines or ["x = 1"]
    return "\n".join(lines).encode(errors="surrogatepass")


def mutate_lines(rng: random.Random, data: bytes) -> bytes:
    """One line of a file of JSON lines."""
    lines = data.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    lines[place] = mutate_json(rng, lines[place]) + rng.choice((b"\n", b"\n", b"\n", b""))
    return b"".join(lines)


def mutate_safetensors(rng: random.Random, data: bytes) -> bytes:
    """A value of the header, or a few numbers of the tensors."""
    length = struct.unpack("<Q", data[:8])[0]
    header, body = data[8 : 8 + length], bytearray(data[8 + length :])
    if rng.random() < 0.6:
        header = mutate_json(rng, header)
        header += b" " * (-len(header) % 8)
    elif body:
        number = rng.choice((b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\0\0\x80\xff", b"\xff\xff\x7f\x7f", b"\0\0\x80\xbf"))
        place = rng.randrange(0, len(body), 4)
        body[place : place + 4] = number
    return struct.pack("<Q", len(header)) + header + bytes(body)


def joined(*parts: bytes) -> bytes:
    """Files that belong together as one input: the length of each, then its contents."""
    return b"".join(len(part).to_bytes(3, "big") + part for part in parts)


def parts_of(data: bytes, count: int) -> list[bytes]:
    """The files of an input again; where it is cut off, empty ones."""
    parts = []
    for _ in range(count):
        size = int.from_bytes(data[:3], "big")
        parts.append(data[3 : 3 + size])
        data = data[3 + size :]
    return parts


def mutate_part(*mutators: Mutator) -> Mutator:
    """Damage one of the files that an input joins, each by its own mutator."""

    def mutate(rng: random.Random, data: bytes) -> bytes:
        parts = parts_of(data, len(mutators))
        place = rng.randrange(len(parts))
        parts[place] = mutators[place](rng, parts[place])
        return joined(*parts)

    return mutate
