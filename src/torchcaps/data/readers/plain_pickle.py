"""Read a pickled dictionary of text, whole numbers and arrays of bytes without running it.

A pickle is a program that may call any function, and a forged array or dtype can corrupt memory. So no unpickler is
at work here: the few instructions that Python 2, Python 3 and NumPy write for such a dictionary are followed as
data. Every other instruction, name or nesting is refused.
"""

from __future__ import annotations

import math
import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchcaps.errors import DataError

__all__ = ["read_plain_pickle"]

MOST_STEPS = 1_000_000  # a batch of 10,000 pictures takes 50,000
INSTRUCTIONS = {ord(instruction.code): instruction.name for instruction in pickletools.opcodes}
NUMBERS = {"BININT": 4, "BININT1": 1, "BININT2": 2}  # instruction → bytes of its argument
PLACES = {"BINPUT": 1, "LONG_BINPUT": 4, "BINGET": 1, "LONG_BINGET": 4}
IGNORED = {"PROTO": 1, "FRAME": 8}
BYTES = {"SHORT_BINSTRING": 1, "BINSTRING": 4, "SHORT_BINBYTES": 1, "BINBYTES": 4, "BINBYTES8": 8, "BYTEARRAY8": 8}
TEXTS = {"SHORT_BINUNICODE": 1, "BINUNICODE": 4, "BINUNICODE8": 8}  # … or of the length that stands before it
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}

RECONSTRUCT = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
FROM_BUFFER = ("numpy.core.numeric _frombuffer", "numpy._core.numeric _frombuffer")
NAMES = frozenset({*RECONSTRUCT, *FROM_BUFFER, "numpy ndarray", "numpy dtype", "_codecs encode"})


class _Name(str):
    """One of :data:`NAMES`; never looked up."""


class _UnsignedBytes:
    """``numpy.dtype("u1")``."""


class _Array:
    """An array of bytes, once its contents have come."""

    values: NDArray[np.uint8] | None = None


def read_plain_pickle(data: bytes) -> dict[bytes, Any]:
    """The dictionary that a pickle of protocol 2 to 5 describes; its values are text, numbers, lists and arrays.

    Arrays are uint8 ``[N, M]``, lists hold whole numbers or text. Memory is bounded by the size of the pickle.
    """
    try:
        return _Steps(data).run()
    except (IndexError, KeyError, ValueError) as error:  # an empty stack, an unknown place, text that is none
        raise DataError(f"the pickle is damaged ({type(error).__name__}: {error})") from error


class _Steps:
    def __init__(self, data: bytes) -> None:
        self.data = memoryview(data)
        self.position = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.encoded = 0

    def run(self) -> dict[bytes, Any]:
        for _ in range(MOST_STEPS):
            code = self._take(1)[0]
            name = INSTRUCTIONS.get(code, f"0x{code:02X}")
            if name == "STOP":
                return self._result()
            self._step(name)
        raise DataError(f"the pickle has more than {MOST_STEPS:,} instructions; a batch of pictures has fewer")

    def _result(self) -> dict[bytes, Any]:
        if len(self.stack) != 1 or not isinstance(self.stack[0], dict):
            raise DataError("the pickle does not describe one dictionary")
        found = {key: value.values if isinstance(value, _Array) else value for key, value in self.stack[0].items()}
        return {key if isinstance(key, bytes) else key.encode(): value for key, value in found.items()}

    def _step(self, name: str) -> None:
        if name in IGNORED:
            self._take(IGNORED[name])
        elif name in NUMBERS:
            self.stack.append(int.from_bytes(self._take(NUMBERS[name]), "little", signed=name == "BININT"))
        elif name in BYTES:
            self.stack.append(bytes(self._take(self._number(BYTES[name]))))
        elif name in TEXTS:
            self.stack.append(str(self._take(self._number(TEXTS[name])), "utf-8", "surrogatepass"))
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in TUPLES:
            self._make_tuple(len(self.stack) - TUPLES[name])
        elif name in PLACES:
            place = self._number(PLACES[name])
            if name.endswith("PUT"):
                self.memo[place] = self.stack[-1]
            else:
                self.stack.append(self.memo[place])
        else:
            self._structure(name)

    def _structure(self, name: str) -> None:
        match name:
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "MARK":
                self.marks.append(len(self.stack))
            case "EMPTY_DICT":
                self.stack.append({})
            case "EMPTY_LIST":
                self.stack.append([])
            case "TUPLE":
                self._make_tuple(self.marks.pop())
            case "APPEND" | "APPENDS":
                self._extend(self._popped(self.marks.pop() if name == "APPENDS" else len(self.stack) - 1))
            case "SETITEM" | "SETITEMS":
                self._set(self._popped(self.marks.pop() if name == "SETITEMS" else len(self.stack) - 2))
            case "GLOBAL":
                self._name(self._line(), self._line())
            case "STACK_GLOBAL":
                self._name(*self._popped(len(self.stack) - 2))
            case "REDUCE":
                function, arguments = self._popped(len(self.stack) - 2)
                self.stack.append(self._called(function, arguments))
            case "BUILD":
                (state,) = self._popped(len(self.stack) - 1)
                self._build(self.stack[-1], state)
            case _:
                raise DataError(
                    f"the pickle has the instruction {name}, which a batch of pictures has no use for; refused"
                )

    def _take(self, count: int) -> memoryview:
        taken = self.data[self.position : self.position + count]
        if len(taken) < count:
            raise DataError("the pickle ends in the middle; the file is truncated or damaged")
        self.position += count
        return taken

    def _number(self, width: int) -> int:
        return int.from_bytes(self._take(width), "little")

    def _line(self) -> str:
        line = bytes(self.data[self.position : self.position + 100]).partition(b"\n")[0]
        self.position += len(line) + 1
        return line.decode("ascii")

    def _popped(self, first: int) -> list[Any]:
        if first < 0:
            raise DataError("the pickle takes more from its stack than was put there; refused")
        popped = self.stack[first:]
        del self.stack[first:]
        return popped

    def _make_tuple(self, first: int) -> None:
        items = self._popped(first)
        for item in items:
            inner = item if isinstance(item, tuple) else ()
            if isinstance(item, list | dict | _Array) or any(not isinstance(number, int) for number in inner):
                raise DataError("the pickle nests its contents deeper than a batch of pictures does; refused")
        self.stack.append(tuple(items))

    def _extend(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], list) or any(type(item) not in (int, bytes, str) for item in items):
            raise DataError("the pickle has a list of other things than whole numbers and text; refused")
        self.stack[-1].extend(items)

    def _set(self, items: list[Any]) -> None:
        keys, values = items[::2], items[1::2]
        right = all(type(key) in (bytes, str) for key in keys) and not any(
            isinstance(value, dict | tuple | _Name | _UnsignedBytes) for value in values
        )
        if not isinstance(self.stack[-1], dict) or len(keys) != len(values) or not right:
            raise DataError("the pickle has a dictionary of other things than text, numbers, lists and arrays; refused")
        self.stack[-1].update(zip(keys, values, strict=True))

    def _name(self, module: Any, name: Any) -> None:
        if f"{module} {name}" not in NAMES:
            asked = f"{module}.{name}"[:100]
            raise DataError(f"the pickle asks for {asked}, which a batch of pictures has no use for; refused")
        self.stack.append(_Name(f"{module} {name}"))

    def _called(self, function: Any, arguments: Any) -> Any:
        if isinstance(function, _Name):
            match str(function), arguments:
                case "_codecs encode", (str(text), "latin1"):
                    self.encoded += len(text)  # one text can be encoded many times over
                    if self.encoded <= len(self.data):
                        return text.encode("latin-1")
                case "numpy dtype", ("u1" | b"u1", int(), int()):
                    return _UnsignedBytes()
                case "numpy dtype", (str() | bytes() as kind, *_):
                    raise DataError(f"the pickle has an array of type {kind[:20]!r}; pictures are bytes ('u1')")
                case called, (_Name() as kind, (0,), "b" | b"b") if called in RECONSTRUCT and kind == "numpy ndarray":
                    return _Array()
                case called, (bytes(values), _UnsignedBytes(), tuple(shape), "C" | "F" as order) if (
                    called in FROM_BUFFER
                ):
                    array = _Array()
                    array.values = _filled(values, shape, order)
                    return array
        raise DataError("the pickle makes a call that a batch of pictures has no use for; refused")

    def _build(self, built: Any, state: Any) -> None:
        if isinstance(state, tuple):
            plain = tuple(item.encode() if isinstance(item, str) else item for item in state)
            match built, plain:
                case _UnsignedBytes(), (int(), b"|" | b"<" | b">" | b"=", None, None, None, -1, -1, 0):
                    return
                case _Array(), (int(), tuple(shape), _UnsignedBytes(), int(by_columns), bytes(values)):
                    built.values = _filled(values, shape, "F" if by_columns else "C")
                    return
        raise DataError("the pickle has an array or a type that was not made by NumPy for bytes; refused")


def _filled(values: bytes, shape: tuple[Any, ...], order: Any) -> NDArray[np.uint8]:
    if len(shape) != 2 or any(type(size) is not int or size < 1 for size in shape) or math.prod(shape) != len(values):
        found = " × ".join(str(size)[:20] for size in shape[:4])
        raise DataError(f"the pickle announces an array of {found} bytes and brings {len(values):,}")
    return np.frombuffer(values, np.uint8).reshape(shape, order=order)
