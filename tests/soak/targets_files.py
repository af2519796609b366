"""Readers of archives, packed files, answers of servers, tables, and folders of pictures."""

from __future__ import annotations

import gzip
import http.client
import io
import json
import shutil
import socket
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image
from tests.published_files import picture_bytes, write_picture_folder
from tests.soak.formats import (
    joined,
    mutate_cells,
    mutate_gzip,
    mutate_one_of,
    mutate_png,
    mutate_tar,
    mutate_zip,
    parts_of,
)
from tests.soak.target import Target

from torchcaps.data.archive import archive_members
from torchcaps.data.catalog import CATALOG
from torchcaps.data.contents import read_contents
from torchcaps.data.download import download
from torchcaps.data.readers.cifar import binary_batches_from_sprites
from torchcaps.data.readers.folder import read_picture_folder
from torchcaps.data.readers.pictures import decode_pictures
from torchcaps.data.readers.table import read_picture_table

MEMBERS = {"package/a": bytes(range(200)), "package/data/b": b"B" * 700, "readme": b"?"}
NAMES = ("groups.csv", "cat/1.png", "cat/2.gif", "dog/1.jpg", "dog/deeper/2.png")


def _zip_seeds(_: Path) -> list[bytes]:
    seeds = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            for name, contents in MEMBERS.items():
                archive.writestr(zipfile.ZipInfo(name), contents, method)
        seeds.append(buffer.getvalue())
    return seeds


def _tar_seeds(_: Path) -> list[bytes]:
    seeds = []
    for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
            deep = "" if form == tarfile.USTAR_FORMAT else "é" * 120 + "/"
            for name, contents in MEMBERS.items():
                member = tarfile.TarInfo(deep + name)
                member.size = len(contents)
                archive.addfile(member, io.BytesIO(contents))
            link = tarfile.TarInfo("package/c")
            link.type, link.linkname = tarfile.SYMTYPE, "a"
            archive.addfile(link)
        seeds.append(buffer.getvalue())
    return seeds + [gzip.compress(seed, mtime=0) for seed in seeds]


def _read_archive(data: bytes, _: Path) -> object:
    return archive_members(data, ("a", "b"), "soaked")


def _gzip_seeds(_: Path) -> list[bytes]:
    return [gzip.compress(bytes(range(256)) * 8, mtime=0), gzip.compress(b"one", mtime=0) + gzip.compress(b"two")]


def _read_gzip(data: bytes, scratch: Path) -> object:
    (scratch / "packed.gz").write_bytes(data)
    return read_contents(scratch / "packed.gz")


def _answer_seeds(_: Path) -> list[bytes]:
    body = bytes(range(200))
    return [
        b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n" + body,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nC8\r\n" + body + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-199/200\r\nContent-Length: 200\r\n\r\n" + body,
    ]


class _Answer:
    """A socket on whose other end a server has said all it will say."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self.data)

    def sendall(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def _read_answer(data: bytes, scratch: Path) -> object:
    def connect(connection: http.client.HTTPConnection) -> None:
        connection.sock = _Answer(data)

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network here")

    was, socket.create_connection = socket.create_connection, refuse
    real, http.client.HTTPConnection.connect = http.client.HTTPConnection.connect, connect
    try:
        download("http://server.invalid/file", scratch / "fetched", max_bytes=10_000)
    finally:
        http.client.HTTPConnection.connect, socket.create_connection = real, was
    return None


def _table_seeds(_: Path) -> list[bytes]:
    names = [f"pictures/{'ab'[number % 2]}/{number // 2:03}.png" for number in range(10)]
    lines = {
        "path,label": "{name},{letter}",
        "path,labels,group": "{name},{letter};c,{number}",
        "path,a,b,split": "{name},1,0,{part}",
        "path,label,group,split": '"{name}",{letter},{number},{part}',
    }
    seeds = []
    for header, line in lines.items():
        rows = [
            line.format(name=name, number=number, letter="ab"[number % 2], part="test" if number > 7 else "train")
            for number, name in enumerate(names)
        ]
        seeds.append("\n".join([header, *rows]).encode())
    return seeds


def _read_table(data: bytes, scratch: Path) -> object:
    if not (scratch / "pictures").is_dir():
        write_picture_folder(scratch / "pictures", {"a": 5, "b": 5}, size=4)
    (scratch / "list.csv").write_bytes(data)
    return read_picture_table(scratch / "list.csv")


def _grey(count: int = 8) -> np.ndarray:
    return (np.arange(count * count) * 7 % 251).astype(np.uint8).reshape(count, count)


def _saved(pixels: np.ndarray, kind: str, mode: str | None = None, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture = Image.fromarray(pixels)
    (picture.convert(mode) if mode else picture).save(buffer, kind, **options)
    return buffer.getvalue()


def _picture_seeds(_: Path) -> list[bytes]:
    grey = _grey()
    colour = np.stack([grey, grey.T, 255 - grey], axis=2)
    turned = Image.Exif()
    turned[0x0112] = 6
    frames = [Image.fromarray(grey), Image.fromarray(grey.T)]
    moving = io.BytesIO()
    frames[0].save(moving, "GIF", save_all=True, append_images=frames[1:])
    return [
        *(_saved(grey, "PNG", mode) for mode in ("L", "1", "P", "LA", "RGBA", "I;16")),
        _saved(colour, "PNG"),
        _saved(colour, "PNG", "P", transparency=0),
        _saved(colour, "JPEG", exif=turned),
        _saved(colour, "JPEG", "CMYK", progressive=True),
        _saved(colour, "WEBP"),
        _saved(colour, "WEBP", lossless=True),
        moving.getvalue(),
        _saved(colour, "BMP"),
        _saved(grey, "BMP", "1"),
        _saved(grey.astype(np.float32), "TIFF"),
        *(_saved(colour, "TIFF", compression=way) for way in ("raw", "tiff_lzw", "jpeg", "tiff_adobe_deflate")),
    ]


def _read_picture(data: bytes, scratch: Path) -> object:
    (scratch / "picture").write_bytes(data)
    return decode_pictures([scratch / "picture"])


def _folder_seeds(_: Path) -> list[bytes]:
    groups = "path,group\n" + "\n".join(f"{name},patient {place}" for place, name in enumerate(NAMES[1:]))
    kinds = {".png": "PNG", ".gif": "GIF", ".jpg": "JPEG"}
    pictures = [picture_bytes(_grey(), kinds[Path(name).suffix]) for name in NAMES[1:]]
    divided = [name if name == "groups.csv" else f"train/{name}" for name in NAMES]
    divided[2] = "test/cat/2.gif"
    return [
        joined("\n".join(NAMES).encode(), groups.encode(), *pictures),
        joined("\n".join(NAMES).encode(), b"", *pictures),
        joined("\n".join(divided).encode(), b"", *pictures),
    ]


def _read_folder(data: bytes, scratch: Path) -> object:
    """The first part names the files, those below ``scratch/own`` only; an empty one is not written."""
    listing, *contents = parts_of(data, len(NAMES) + 1)
    own = scratch / "own"
    shutil.rmtree(own, ignore_errors=True)
    for name, content in zip(listing.split(b"\n"), contents, strict=False):
        steps = [step[:60].decode("utf-8", "surrogateescape") for step in name.split(b"/")[:6]]
        if content and all(step not in ("", ".", "..") and "\0" not in step for step in steps):
            path = own.joinpath(*steps)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError:  # a folder where a file shall stand
                continue
    return read_picture_folder(own)


def _sprite_seeds(_: Path) -> list[bytes]:
    sheets = [_saved(np.zeros((2, 1024, 3), np.uint8), "PNG") for _ in range(6)]
    return [joined(*sheets, json.dumps([1] * 10).encode(), json.dumps([2, 3]).encode())]


def _read_sprites(data: bytes, _: Path) -> object:
    return binary_batches_from_sprites(
        dict(zip(CATALOG["cifar10"].packages[0].members, parts_of(data, 8), strict=True))
    )


TARGETS = (
    Target("zip", _zip_seeds, _read_archive, mutate_zip),
    Target("tar", _tar_seeds, _read_archive, mutate_tar),
    Target("gzip", _gzip_seeds, _read_gzip, mutate_gzip),
    Target("answers", _answer_seeds, _read_answer, share=0.5),
    Target("table", _table_seeds, _read_table, mutate_cells, share=0.5),
    Target("pictures", _picture_seeds, _read_picture, mutate_png),
    Target("folder", _folder_seeds, _read_folder, mutate_one_of(len(NAMES) + 1), share=0.5),
    Target("sprites", _sprite_seeds, _read_sprites, mutate_one_of(8, mutate_png), share=0.5),
)
