"""The arrays of a NumPy ``.npz`` file, each checked against the file before its values are unpacked.

The header of an array is a Python literal; it is matched as text and never evaluated. Types are numbers and text:
an array of objects would be a pickle.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchcaps._foreign import shown
from torchcaps.data.contents import MAX_FILE_BYTES
from torchcaps.data.zipped import ZipMember, opened_zip
from torchcaps.errors import DataError

__all__ = ["Columns", "parse_npz"]

Columns = dict[str, NDArray[Any]]

ZIP_MAGIC = b"PK"
NPY_MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 10_000  # NumPy's own limit
MOST_DIMENSIONS = 32
HEADER = re.compile(r"\{(?P<items>.*)\}\s*", re.DOTALL)
ITEM = re.compile(
    r"""\s*(?P<mark>['"])(?P<key>descr|fortran_order|shape)(?P=mark)\s*:\s*"""
    r"""(?:(?P<quote>['"])(?P<text>[^'"]*)(?P=quote)|(?P<flag>True|False)|\((?P<sizes>[0-9L,\s]*)\))\s*(?:,|$)\s*"""
)
KIND = re.compile(r"[<>|=]?(?:b1|[ui][1248]|f[248]|c(?:8|16)|[mM]8\[(?:[YMWDhms]|[munpfa]s)\]|[SU][1-9][0-9]{0,6})")


def parse_npz(data: bytes, where: str = "npz data", max_bytes: int = MAX_FILE_BYTES) -> Columns:
    """Every array of the file by name, in the machine's byte order; what could run code or fill memory is refused."""
    if not data.startswith(ZIP_MAGIC):
        raise DataError(f"{where} is not an .npz file; write one with numpy.savez")
    columns: Columns = {}
    with opened_zip(data, where, max_bytes) as members:
        forms = [(member, _form(member, f"{where}, {shown(member.name)}")) for member in members]
        for member, form in forms:
            name = member.name.removesuffix(".npy")
            if name in columns:
                raise DataError(f"{where} has two arrays named {shown(name)}; save it again with one")
            columns[name] = _values(member, form, f"{where}, {shown(member.name)}")
    return columns


class _Form:
    """What the header of an array says."""

    def __init__(self, kind: np.dtype[Any], shape: tuple[int, ...], order: Any, header: int) -> None:
        self.kind, self.shape, self.order, self.header = kind, shape, order, header


def _form(member: ZipMember, where: str) -> _Form:
    """Read a header, and compare the size that it announces with that of the member."""
    start = bytes(member.read(LONGEST_HEADER + 12))
    version = start[6:7]
    if not start.startswith(NPY_MAGIC) or version not in (b"\1", b"\2", b"\3"):
        raise DataError(f"{where} is not an array in NumPy's format (.npy, version 1 to 3); leave it out")
    width = 2 if version == b"\1" else 4
    first = 8 + width
    last = first + int.from_bytes(start[8:first], "little")
    if not first < last <= min(len(start), first + LONGEST_HEADER):
        raise DataError(f"{where} has a header that is longer than {LONGEST_HEADER:,} bytes, or than the file")
    kind, order, shape = _described(start[first:last].decode("latin-1"), where)
    announced = math.prod(shape) * kind.itemsize
    if announced != member.size - last:
        sizes = " × ".join(map(str, shape)) or "one"
        raise DataError(
            f"{where} announces {sizes} values of {kind.itemsize} bytes, but {member.size - last:,} bytes follow; "
            "the file is damaged"
        )
    return _Form(kind, shape, order, last)


def _described(header: str, where: str) -> tuple[np.dtype[Any], str, tuple[int, ...]]:
    whole, found, position = HEADER.fullmatch(header), {}, 0
    items = whole["items"] if whole else ""
    while item := ITEM.match(items, position):
        found[item["key"]], position = item, item.end()
    if len(found) < 3 or position < len(items):
        raise DataError(
            f"{where} should be an array of numbers or of text, found {shown(header.strip())}; objects and records "
            "are refused, so save their columns one by one"
        )
    kind, flag, sizes = found["descr"]["text"], found["fortran_order"]["flag"], found["shape"]["sizes"]
    if kind is None or not KIND.fullmatch(kind):
        raise DataError(
            f"{where} should hold numbers or text, found the type {shown(kind)}; convert it or leave it out"
        )
    shape = [int(size[:20]) for size in re.findall(r"\d+", sizes or "")]
    largest = math.prod(size or 1 for size in shape) * np.dtype(kind).itemsize  # also where another size is 0
    if flag is None or sizes is None or len(shape) > MOST_DIMENSIONS or largest > MAX_FILE_BYTES:
        raise DataError(f"{where} has a damaged header, {shown(header.strip())}; save the file again")
    return np.dtype(kind), "F" if flag == "True" else "C", tuple(shape)


def _values(member: ZipMember, form: _Form, where: str) -> NDArray[Any]:
    contents = member.read()  # can be written to, as torch wants it
    if not math.prod(form.shape):
        return np.zeros(form.shape, form.kind.newbyteorder("="))
    if form.kind.kind == "b":  # a byte of 2 would be a truth of no known kind
        return (np.frombuffer(contents, np.uint8, offset=form.header) != 0).reshape(form.shape, order=form.order)
    flat = np.frombuffer(contents, form.kind, offset=form.header)
    flat = flat.astype(form.kind.newbyteorder("="), copy=False)
    if form.kind.kind == "U":
        codes = flat.view(np.uint32)
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise DataError(f"{where} holds text with characters that do not exist; the file is damaged")
    return flat.reshape(form.shape, order=form.order)
