"""Numbers from MATLAB 5 files (``save -v5`` to ``-v7``): a header of 128 bytes, then elements of a type and a size.

Numeric arrays are read, and records of them; cells, text, objects and functions are passed over. A size counts where
the file is large enough for it, and an element is unpacked within the size that it states.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from torchcaps.data.contents import PIECE, check_unpacked_size
from torchcaps.errors import DataError

__all__ = ["read_mat"]

Record = dict[str, NDArray[Any]]

HEADER = 128
ORDERS: dict[bytes, Literal["little", "big"]] = {b"\x00\x01IM": "little", b"\x01\x00MI": "big"}
HDF5_VERSIONS = (b"\x00\x02IM", b"\x02\x00MI")
TAG = 8  # a small element has its contents in the second half of its tag
MATRIX, COMPRESSED = 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
NUMERIC = range(6, 16)  # double, single, and whole numbers of 1 to 8 bytes
STRUCT, OPAQUE = 2, 17
OTHER_CLASSES = {1: "a cell array", 3: "an object", 4: "text", 5: "a sparse matrix", 16: "a function", 17: "an object"}
COMPLEX = 0x0800
MOST_DIMENSIONS = 32


def read_mat(data: bytes, wanted: Sequence[str], where: str = "MATLAB file") -> dict[str, NDArray[Any] | Record]:
    """The ``wanted`` variables by name: an array, or the numeric fields of a record."""
    version = data[HEADER - 4 : HEADER]
    if version in HDF5_VERSIONS:
        raise DataError(f"{where} is a MATLAB 7.3 file, which is not read; save it in MATLAB with -v7")
    if version not in ORDERS:
        raise DataError(f"{where} is not a MATLAB 5 file, or its header is damaged")
    reader = _Reader(len(data), ORDERS[version], where)
    found: dict[str, NDArray[Any] | Record] = {}
    others = set()
    for kind, contents in reader.elements(memoryview(data)[HEADER:]):
        matrix = reader.matrix(reader.inflated(contents) if kind == COMPRESSED else reader.only(MATRIX, kind, contents))
        if matrix.name in wanted:
            found[matrix.name] = reader.record(matrix) if matrix.kind == STRUCT else reader.numbers(matrix)
        elif matrix.name:
            others.add(matrix.name)
    if missing := [name for name in wanted if name not in found]:
        known = ", ".join(sorted(found.keys() | others)) or "none"
        raise DataError(f"{where}: expected the variable {missing[0]!r}, found {known[:200]}")
    return found


@dataclass(frozen=True)
class _Matrix:
    """A variable or a field whose values still wait in ``rest``."""

    name: str
    kind: int
    complex: bool
    shape: tuple[int, ...]
    rest: Iterator[tuple[int, memoryview]]


class _Reader:
    def __init__(self, file_bytes: int, order: Literal["little", "big"], where: str) -> None:
        self.file_bytes, self.order, self.where = file_bytes, order, where
        self.unpacked = 0

    def elements(self, view: memoryview) -> Iterator[tuple[int, memoryview]]:
        """Type and contents of each element that follows."""
        position = 0
        while position + TAG <= len(view):
            kind, size = self._number(view[position : position + 4]), self._number(view[position + 4 : position + TAG])
            first, step = position + TAG, TAG + size + (0 if kind == COMPRESSED else -size % 8)
            if kind >> 16:
                kind, size, first, step = kind & 0xFFFF, kind >> 16, position + 4, TAG
            if first + size > len(view) or (step == TAG and size > 4):
                raise self.damaged(f"an element announces {size:,} bytes, and fewer follow")
            yield kind, view[first : first + size]
            position += step

    def inflated(self, packed: memoryview) -> memoryview:
        """The contents of the matrix in a compressed element."""
        try:
            head = zlib.decompressobj().decompress(packed[:1024], TAG)
            size = self._number(head[4:TAG])
            self.unpacked += size
            check_unpacked_size(self.unpacked, self.file_bytes, self.where)
            machine, whole = zlib.decompressobj(), bytearray()
            for first in range(0, len(packed), PIECE):
                whole += machine.decompress(packed[first : first + PIECE], TAG + size + 1 - len(whole))
                if len(whole) > TAG + size:
                    break
        except zlib.error as error:
            raise self.damaged(str(error)) from error
        if len(whole) != TAG + size or not machine.eof:
            raise self.damaged(f"a compressed element should have {size:,} bytes, and has others")
        view = memoryview(whole)
        return self.only(MATRIX, self._number(view[:4]), view[TAG:])

    def matrix(self, view: memoryview) -> _Matrix:
        """Name, class and shape of a matrix."""
        rest = self.elements(view)
        flags = self._number(self._next(rest, 6)[:4])
        kind = flags & 0xFF
        if kind == OPAQUE:  # built differently, and of no use
            return _Matrix("", kind, False, (), rest)
        shape = tuple(self._stored(5, self._next(rest, 5)).tolist())
        if not 2 <= len(shape) <= MOST_DIMENSIONS or min(shape) < 0:
            raise self.damaged(f"a variable of the shape {list(shape)[:8]}")
        name = bytes(self._next(rest, 1)).decode("latin-1")
        return _Matrix(name, kind, bool(flags & COMPLEX), shape, rest)

    def numbers(self, matrix: _Matrix) -> NDArray[Any]:
        """The values of a numeric matrix in the type that they are stored in: MATLAB stores whole numbers as such."""
        if matrix.kind not in NUMERIC or matrix.complex:
            what = "complex" if matrix.complex else OTHER_CLASSES.get(matrix.kind, "a record")
            raise DataError(f"{self.where}: expected {matrix.name!r} as an array of real numbers, found it {what}")
        kind, contents = next(matrix.rest, (0, memoryview(b"")))
        values = self._stored(kind, contents)
        if math.prod(matrix.shape) != len(values):
            sizes = " × ".join(map(str, matrix.shape))
            raise self.damaged(f"{matrix.name!r} announces {sizes} values and brings {len(values):,}")
        return values.reshape(matrix.shape, order="F")

    def record(self, matrix: _Matrix) -> Record:
        """The numeric fields of a record."""
        if math.prod(matrix.shape) != 1:
            raise DataError(f"{self.where}: expected {matrix.name!r} as one record, found {list(matrix.shape)[:8]}")
        width = self._number(self._next(matrix.rest, 5)[:4])
        joined = bytes(self._next(matrix.rest, 1))
        if not width or len(joined) % width:
            raise self.damaged(f"the names of the fields of {matrix.name!r}")
        found = {}
        for first in range(0, len(joined), width):
            name = joined[first : first + width].partition(b"\0")[0].decode("latin-1")
            contents = self._next(matrix.rest, MATRIX)
            if not contents:  # an empty field may be written without a body
                continue
            field = self.matrix(contents)
            if field.kind in NUMERIC and not field.complex:
                found[name] = self.numbers(field)
        return found

    def only(self, expected: int, kind: int, contents: memoryview) -> memoryview:
        if kind != expected:
            raise self.damaged(f"expected an element of type {expected}, found {kind}")
        return contents

    def damaged(self, what: str) -> DataError:
        return DataError(f"{self.where} is a damaged MATLAB file ({what}); fetch it again")

    def _next(self, rest: Iterator[tuple[int, memoryview]], expected: int) -> memoryview:
        return self.only(expected, *next(rest, (0, memoryview(b""))))

    def _stored(self, kind: int, contents: memoryview) -> NDArray[Any]:
        dtype = np.dtype(STORED.get(kind, "V0")).newbyteorder(self.order)
        if kind not in STORED or len(contents) % dtype.itemsize:
            raise self.damaged(f"{len(contents):,} bytes of values of type {kind}")
        return np.frombuffer(contents, dtype).astype(dtype.newbyteorder("="), copy=False)

    def _number(self, view: memoryview | bytes) -> int:
        return int.from_bytes(view, self.order)
