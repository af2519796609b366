"""Damage bytes in the ways that break readers: flipped bits, hostile sizes, cut, repeated and foreign pieces."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.soak.target import Target

__all__ = ["damaged", "input_of"]

MOST_BYTES = 1 << 20  # of a mutated input; pieces are repeated over and over otherwise
NUMBERS = (0, 1, 2, 3, 7, 8, 15, 16, 255, 256, 1000, 2**15 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)
HUGE = (*NUMBERS, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 8)
WORDS = """0 1 -1 9 1e999 -1e308 1.5 nan NaN inf Infinity null true false
 [] {} " ' \\ , : ; .. / // ../.. C:\\ \0 \ufeff é
 9999999999 -9223372036854775809 99999999999999999999999999 |O |V8 <f8 >u1 <U9999999"""
TEXTS = (*(word.encode() for word in WORDS.split()), b" ", b"\n", b"\r\n")


def input_of(target: Target, seeds: Sequence[bytes], seed: int, index: int) -> bytes:
    """Input ``index`` of a target: the same whatever the number of workers and whatever was read before."""
    rng = random.Random(f"{seed}:{target.name}:{index}")
    data = rng.choice(seeds)
    if target.mutate is not None and rng.random() < 0.5:
        return target.mutate(rng, data)
    return damaged(rng, data, seeds)


def damaged(rng: random.Random, data: bytes, others: Sequence[bytes] = (b"",)) -> bytes:
    """Between one and eight small damages, few of them more often than many."""
    found = bytearray(data)
    for _ in range(min(8, 1 + int(rng.expovariate(0.7)))):
        rng.choice(DAMAGES)(rng, found, others)
        del found[MOST_BYTES:]
    return bytes(found)


def _place(rng: random.Random, data: bytearray, room: int = 1) -> int:
    """A position; the first bytes, where headers stand, and the last, where directories stand, more often."""
    last = max(0, len(data) - room)
    near = min(last, int(rng.expovariate(1 / 64)))
    return rng.choice((near, last - near, rng.randint(0, last)))


def _piece(rng: random.Random, data: bytes | bytearray) -> slice:
    first = rng.randint(0, len(data))
    return slice(first, first + int(rng.expovariate(1 / rng.choice((2, 16, 256)))) + 1)


def _flip_bit(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[_place(rng, data)] ^= 1 << rng.randrange(8)


def _set_byte(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[_place(rng, data)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _set_number(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    width = rng.choice((2, 4, 8))
    place = _place(rng, data, width)
    data[place : place + width] = (rng.choice(HUGE) % 256**width).to_bytes(width, rng.choice(("little", "big")))


def _add_to_number(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A size that is off by little, or by a factor."""
    width, order = rng.choice((1, 2, 4)), rng.choice(("little", "big"))
    place = _place(rng, data, width)
    number = int.from_bytes(data[place : place + width], order)
    changed = rng.choice((number + 1, number - 1, number * 2, number + 8, -number, number << 8))
    data[place : place + width] = (changed % 256**width).to_bytes(width, order)


def _cut_out(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_piece(rng, data)]


def _cut_off(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[rng.randint(0, len(data)) :]


def _repeat(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    piece = _piece(rng, data)
    data[piece.start : piece.start] = data[piece] * rng.choice((1, 1, 2, 100, 2000))


def _insert_noise(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    place = _place(rng, data, 0)
    data[place:place] = rng.randbytes(rng.choice((1, 2, 8, 100)))


def _insert_text(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    """In the place of as many bytes, or of a run of digits, or between two bytes."""
    text, place = rng.choice(TEXTS), _place(rng, data)
    end = place + rng.choice((0, len(text)))
    if data[place : place + 1].isdigit():
        while data[end : end + 1].isdigit():
            end += 1
    data[place:end] = text


def _from_another(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    other = rng.choice(others)
    data[_piece(rng, data)] = other[_piece(rng, other)]


def _swap(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    one, two = _piece(rng, data), _piece(rng, data)
    data[one], data[two] = data[two], data[one]


def _zero(rng: random.Random, data: bytearray, _: Sequence[bytes]) -> None:
    piece = _piece(rng, data)
    data[piece] = bytes(len(data[piece]))


DAMAGES = (
    _flip_bit,
    _flip_bit,
    _set_byte,
    _set_number,
    _set_number,
    _add_to_number,
    _cut_out,
    _cut_off,
    _repeat,
    _insert_noise,
    _insert_text,
    _from_another,
    _swap,
    _zero,
)
