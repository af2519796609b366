"""Damage with knowledge of a format: the inside of a packed member, one instruction, one field; checksums put right."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import pickletools
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial

import numpy as np
from tests.soak.mutate import HUGE, TEXTS, damaged

__all__ = [
    "joined",
    "mutate_cells",
    "mutate_gzip",
    "mutate_instructions",
    "mutate_mat",
    "mutate_npz",
    "mutate_one_of",
    "mutate_png",
    "mutate_tar",
    "mutate_zip",
    "parts_of",
]

Mutate = Callable[[random.Random, bytes], bytes]
KINDS = ("u1", "i1", "u2", "i4", "i8", "u8", ">i4", "f2", "f4", "f8", "?", "S3", "U3", "c8", "M8[s]", "V4", "O")
HEADERS = (
    "{{'descr': {kind!r}, 'fortran_order': {flag}, 'shape': {shape}, }}",
    "{{'shape': {shape}, 'fortran_order': {flag}, 'descr': {kind!r}}}",
    "{{'descr': [('a', {kind!r})], 'fortran_order': {flag}, 'shape': {shape}}}",
    "{shape}",
    "[" * 5000,
    "-" * 5000 + "1",
    "__import__('os').system('true')",
)
METHODS = (zipfile.ZIP_STORED, *[zipfile.ZIP_DEFLATED] * 30, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
TAR_FIELDS = ((0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (345, 155))


def joined(*parts: bytes) -> bytes:
    """Files that belong together as one input: the length of all but the last, then the contents."""
    return b"".join(len(part).to_bytes(3, "big") for part in parts[:-1]) + b"".join(parts)


def parts_of(data: bytes, count: int) -> list[bytes]:
    sizes = [int.from_bytes(data[3 * part : 3 * part + 3], "big") for part in range(count - 1)]
    rest, parts = data[3 * (count - 1) :], []
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return [*parts, rest]


def mutate_one_of(count: int, mutate: Mutate = damaged) -> Mutate:
    """Damage one part of a joined input, and state its new length."""

    def mutated(rng: random.Random, data: bytes) -> bytes:
        parts = parts_of(data, count)
        chosen = rng.randrange(count)
        parts[chosen] = mutate(rng, parts[chosen])
        return joined(*parts)

    return mutated


def mutate_gzip(rng: random.Random, data: bytes, mutate: Mutate = damaged) -> bytes:
    """The inside of a gzip file, or the plain file where it is none."""
    if not data.startswith(b"\x1f\x8b"):
        return mutate(rng, data)
    return gzip.compress(mutate(rng, gzip.decompress(data)), 1, mtime=0) + rng.choice((b"", b"", b"\0", data[:30]))


def mutate_zip(rng: random.Random, data: bytes, mutate: Mutate = damaged) -> bytes:
    """Members of a zip archive: their contents, names and number."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    for _ in range(rng.choice((1, 1, 2))):
        chosen = rng.randrange(len(members))
        name, contents = members[chosen]
        match rng.randrange(8):
            case 0:
                del members[chosen]
            case 1:
                members.append((name, mutate(rng, contents)))
            case 2:
                renamed = damaged(rng, name.encode()).decode("utf-8", "replace")[:1000]
                members[chosen] = (renamed or "a", contents)
            case 3:
                members[chosen] = (name, rng.choice(members)[1])
            case _:
                members[chosen] = (name, mutate(rng, contents))
        if not members:
            break
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", rng.choice(METHODS)) as archive:
        for name, contents in members:
            archive.writestr(zipfile.ZipInfo(name), contents, rng.choice(METHODS))
    return buffer.getvalue()


def mutate_npz(rng: random.Random, data: bytes) -> bytes:
    return mutate_zip(rng, data, _mutate_npy)


def _mutate_npy(rng: random.Random, data: bytes) -> bytes:
    """The header, the array as a whole, or any bytes of a ``.npy`` file."""
    way = rng.randrange(6)
    try:
        array = np.load(io.BytesIO(data))
    except Exception:  # damaged before
        way = 0
    if way == 0:
        return damaged(rng, data)
    if way == 1:
        shape = list(array.shape)
        for _ in range(rng.randrange(3)):
            shape.insert(rng.randint(0, len(shape)), rng.choice(HUGE))
        kind = rng.choice((*KINDS, array.dtype.str, "<U9999999", "|O", "<u1", "u1", "<i8"))
        header = rng.choice(HEADERS).format(kind=kind, flag=rng.choice(("True", "False", "1")), shape=tuple(shape))
        if rng.random() < 0.3:
            header = damaged(rng, header.encode()).decode("latin-1")
        encoded = header.encode("latin-1", "replace")[:60000]
        body = damaged(rng, array.tobytes()) if rng.random() < 0.3 else array.tobytes()
        return b"\x93NUMPY\1\0" + len(encoded).to_bytes(2, "little") + encoded + body
    buffer = io.BytesIO()
    np.save(buffer, _odd(rng, array), allow_pickle=True)
    return buffer.getvalue()


def _odd(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """The array in another type or shape, or with extreme values."""
    found = array.copy()
    for _ in range(rng.choice((1, 1, 2, 3))):
        with (
            contextlib.suppress(ValueError, TypeError, ArithmeticError, IndexError, RuntimeError),
            np.errstate(all="ignore"),
        ):
            match rng.randrange(6):
                case 0:
                    found = found.astype(rng.choice(KINDS))
                case 1:
                    found = found.reshape(rng.choice(((-1,), (-1, 1), (1, -1), (1, *found.shape), (*found.shape, 1))))
                case 2:
                    found = found[: rng.randrange(len(found) + 1)]
                case 3:
                    found = found.T
                case 4:
                    found = np.asarray(found[0])
                case _:
                    places = rng.sample(range(found.size), min(found.size, rng.choice((1, 3))))
                    value = rng.choice((*HUGE, -1, -(2**63), float("nan"), float("inf"), "todo", ""))
                    found.reshape(-1)[places] = np.array(value).astype(found.dtype)
    return found


def mutate_instructions(rng: random.Random, data: bytes) -> bytes:
    """Instructions of a pickle: gone, twice, moved, taken from elsewhere or any of all that exist."""
    starts = [position for _, _, position in pickletools.genops(data)]
    steps = [data[first:last] for first, last in zip(starts, [*starts[1:], len(data)], strict=True)]
    for _ in range(min(8, 1 + int(rng.expovariate(0.7)))):
        first, second = rng.randrange(len(steps)), rng.randrange(len(steps))
        match rng.randrange(6):
            case 0:
                del steps[first]
            case 1:
                steps.insert(second, steps[first])
            case 2:
                steps[first], steps[second] = steps[second], steps[first]
            case 3:
                steps[first] = steps[second] * rng.choice((1, 2, 1000))
            case 4:
                steps[first] = damaged(rng, steps[first])
            case _:
                code = rng.choice(pickletools.opcodes).code.encode("latin-1")
                steps.insert(first, code + rng.choice((b"", b"\1", b"\4\0\0\0", b"os\nsystem\n", b"numpy\ndtype\n")))
        if not steps:
            break
    return b"".join(steps)


def mutate_mat(rng: random.Random, data: bytes) -> bytes:
    """The inside of an element of a MATLAB file, packed again where it was packed."""
    elements, position = [], 128
    while position + 8 <= len(data):
        kind, size = struct.unpack_from("<II", data, position)
        elements.append((kind, data[position + 8 : position + 8 + size]))
        position += 8 + size + (-size % 8 if kind != 15 else 0)
    chosen = rng.randrange(len(elements))
    kind, contents = elements[chosen]
    inside = bytearray(zlib.decompress(contents)[8:] if kind == 15 else contents)
    for _ in range(rng.choice((1, 1, 2))):
        if rng.random() < 0.5 and len(inside) > 8:  # a tag or a size, which stand on multiples of four
            place = 4 * min(int(rng.expovariate(1 / 16)), len(inside) // 4 - 1)
            inside[place : place + 4] = (rng.choice(HUGE) % 2**32).to_bytes(4, "little")
        else:
            inside = bytearray(damaged(rng, bytes(inside)))
    size = rng.choice((len(inside), len(inside), len(inside), rng.choice(HUGE) % 2**32))
    element = struct.pack("<II", 14, size) + inside
    packed = (15, zlib.compress(element, 1)) if rng.random() < 0.5 else (14, bytes(inside))
    elements[chosen] = packed
    return data[:128] + b"".join(
        struct.pack("<II", kind, len(body)) + body + (bytes(-len(body) % 8) if kind != 15 else b"")
        for kind, body in elements
    )


def mutate_tar(rng: random.Random, data: bytes) -> bytes:
    """A field of a header, with its checksum put right."""
    return mutate_gzip(rng, data, _mutate_tar_header)


def _mutate_tar_header(rng: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    headers = [place for place in range(0, len(data) - 511, 512) if data[place + 257 : place + 262] == b"ustar"]
    place = rng.choice(headers or [0])
    for _ in range(rng.choice((1, 1, 2))):
        first, width = rng.choice(TAR_FIELDS)
        text = rng.choice((rng.choice(TEXTS), b"%o" % rng.choice(HUGE), rng.randbytes(width), b"\x80" + bytes(width)))
        text = rng.choice((text, rng.choice((b"x", b"g", b"L", b"K", b"S", b"1", b"2", b"5", b"3"))))
        found[place + first : place + first + width] = text[:width].ljust(width, b"\0")
    header = found[place : place + 512]
    total = sum(header) - sum(header[148:156]) + 8 * 32
    found[place + 148 : place + 156] = b"%06o\0 " % total
    return bytes(found) if rng.random() < 0.7 else damaged(rng, bytes(found))


def mutate_cells(rng: random.Random, data: bytes) -> bytes:
    """Cells, columns and lines of a CSV file."""
    rows = [list(row) for row in csv.reader(io.StringIO(data.decode()))]
    for _ in range(min(8, 1 + int(rng.expovariate(0.5)))):
        row, other = rng.choice(rows), rng.choice(rows)
        place = rng.randrange(len(row)) if row else 0
        match rng.randrange(6):
            case 0:
                row[place : place + 1] = [rng.choice(TEXTS).decode("utf-8", "replace")]
            case 1:
                row[place : place + 1] = other[:1]
            case 2:
                rows.remove(row)
            case 3:
                rows.insert(rng.randint(0, len(rows)), list(row))
            case 4:
                row.extend(other)
            case _:
                row[place : place + 1] = [rng.choice(("path", "label", "labels", "group", "split", "train", "test"))]
        if not rows:
            break
    buffer = io.StringIO()
    with contextlib.suppress(csv.Error):
        csv.writer(buffer, quoting=rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))).writerows(rows)
    return buffer.getvalue().encode("utf-8", "surrogateescape")


def mutate_png(rng: random.Random, data: bytes) -> bytes:
    """A chunk of a PNG file, with its checksum put right; other files anywhere."""
    if not data.startswith(b"\x89PNG"):
        return damaged(rng, data)
    chunks, position = [], 8
    while position + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, position)
        chunks.append((data[position + 4 : position + 8], data[position + 8 : position + 8 + size]))
        position += 12 + size
    chosen = rng.randrange(len(chunks))
    kind, body = chunks[chosen]
    if kind == b"IDAT" and rng.random() < 0.7:
        with contextlib.suppress(zlib.error):
            body = zlib.compress(damaged(rng, zlib.decompress(body)), 1)
    else:
        body = damaged(rng, body)
    chunks[chosen] = (rng.choice((kind, kind, kind, rng.choice(chunks)[0])), body)
    if rng.random() < 0.2:
        rng.shuffle(chunks)
    pack = partial(struct.pack, ">I")
    return data[:8] + b"".join(pack(len(body)) + kind + body + pack(zlib.crc32(kind + body)) for kind, body in chunks)
