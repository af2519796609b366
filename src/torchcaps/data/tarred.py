"""Members of a tar archive in memory: ustar, GNU's long names and POSIX extended headers.

Each step goes forward by at least one block, and no size is believed that leads past the end. So no archive can keep
the reader for long, nor make it take more memory than it has itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchcaps.errors import DataError

__all__ = ["TarMember", "tar_members"]

BLOCK = 512
CHECKSUM = slice(148, 156)
FILE_KINDS = (b"0", b"\0", b"7")
LONG_NAME, LONG_LINK, EXTENDED = b"L", b"K", b"x"
MAX_NAME_BYTES = 1 << 16
RECORD = re.compile(rb"\d+ (path|linkpath)=([^\n]*)\n")


@dataclass(frozen=True)
class TarMember:
    """``contents`` are ``None`` for a link, a folder or a device; ``link`` is where a link leads, else empty."""

    name: str
    link: str
    contents: memoryview | None


def tar_members(data: bytes, where: str) -> Iterator[TarMember]:
    """Every member in turn, the contents as views into ``data``."""
    view, position = memoryview(data), 0
    names: dict[bytes, str] = {}
    while position + BLOCK <= len(data):
        header = data[position : position + BLOCK]
        if not any(header):  # two empty blocks end an archive
            return
        size = _size(header, where)
        first, last = position + BLOCK, position + BLOCK + size
        if last > len(data):
            raise DataError(f"{where} ends inside a member of {size:,} bytes; it is truncated or damaged")
        kind = header[156:157]
        if kind in (LONG_NAME, LONG_LINK, EXTENDED):
            names |= _long_names(kind, data[first : min(last, first + MAX_NAME_BYTES)])
        elif kind != b"g":  # names that hold for all that follow are not in use
            name = names.get(LONG_NAME) or _joined(_text(header[345:500]), _text(header[:100]), header)
            link = names.get(LONG_LINK) or _text(header[157:257])
            yield TarMember(
                name, link if kind in (b"1", b"2") else "", view[first:last] if kind in FILE_KINDS else None
            )
            names = {}
        position = last + -size % BLOCK
    if position == 0:
        raise DataError(f"{where} is not a zip, tar or tar.gz archive, or is cut off; fetch it again")


def _size(header: bytes, where: str) -> int:
    """The size in a header whose checksum is right."""
    try:
        stated = int(header[CHECKSUM].strip(b" \0"), 8)
        size = int(header[124:136].strip(b" \0") or b"0", 8)
    except ValueError:
        stated, size = -1, 0
    found = sum(header) - sum(header[CHECKSUM]) + 8 * ord(" ")
    if stated != found or size < 0:
        raise DataError(f"{where} is not a tar archive, or a header in it is damaged; fetch it again")
    return size


def _long_names(kind: bytes, contents: bytes) -> dict[bytes, str]:
    if kind != EXTENDED:
        return {kind: _text(contents)}
    keys = {b"path": LONG_NAME, b"linkpath": LONG_LINK}
    return {keys[record[1]]: _text(record[2]) for record in RECORD.finditer(contents)}


def _joined(prefix: str, name: str, header: bytes) -> str:
    return f"{prefix}/{name}" if prefix and header[257:263] == b"ustar\0" else name


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")
