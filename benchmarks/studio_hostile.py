"""Requests that a studio must refuse: made by hand, and by chance under rules that leave no valid one among them."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from torchcaps.studio.tensors import MEDIA_TYPE

TENSORS = {"content-type": MEDIA_TYPE}
PICTURE_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")
SCRIPT = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(document.domain)</script></svg>'


@dataclass(frozen=True)
class Fault:
    """One malformed request."""

    name: str
    path: str
    body: bytes = b""
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)


def tensor_body(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    """A body in the safetensors format with any header, right or wrong; ``length`` is what it claims to be long."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def image_body(shape: list[int], data: bytes, dtype: str = "F32", offsets: list[int] | None = None) -> bytes:
    """A body with one tensor named ``images``."""
    return tensor_body({"images": {"dtype": dtype, "shape": shape, "data_offsets": offsets or [0, len(data)]}}, data)


def picture(kind: str, side: int = 40, seed: int = 0) -> bytes:
    """A small picture of noise, whole and valid."""
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def huge_png(width: int, height: int) -> bytes:
    """A PNG of black pixels: a hundred million of them are a hundred kilobytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    row = bytes(1 + width)
    packed = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def zip_bomb() -> bytes:
    """A ZIP file of 50 MB of zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(50_000_000))
    return file.getvalue()


def hostile_uploads(model_id: str) -> Iterator[Fault]:
    """Pictures that are none, or that want to be too much."""
    path = f"/api/upload?model={model_id}"
    jpeg = picture("JPEG")
    contents = {
        "100-megapixel PNG": huge_png(10_000, 10_000),
        "PNG that claims 2^31 pixels a side": huge_png(1, 1).replace(
            struct.pack(">II", 1, 1), struct.pack(">II", 2**31 - 1, 2**31 - 1)
        ),
        "truncated JPEG": jpeg[: len(jpeg) // 2],
        "JPEG head only": jpeg[:20],
        "polyglot of GIF and HTML": b"GIF89a/*" + b"<script>alert(1)</script>*/=1;",
        "polyglot of PNG and ZIP": picture("PNG")[:60] + zip_bomb(),
        "SVG with script": SCRIPT,
        "SVG with entity": b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><svg>&a;</svg>',
        "zip bomb": zip_bomb(),
        "zlib bomb": zlib.compress(bytes(50_000_000)),
        "PDF": b"%PDF-1.4\n1 0 obj<<>>endobj",
        "PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(id) run",
        "TIFF": b"II*\x00" + bytes(60),
        "empty": b"",
        "zeros": bytes(1000),
        "50 MB": bytes(50_000_000),
    }
    for name, content in contents.items():
        yield Fault(f"upload: {name}", path, content, headers={"content-type": "image/png"})
    valid = picture("PNG")
    yield Fault("upload: as SVG", path, SCRIPT, headers={"content-type": "image/svg+xml"})
    yield Fault("upload: as a form", path, valid, headers={"content-type": "multipart/form-data; boundary=x"})
    yield Fault("upload: no model", "/api/upload", valid, headers={"content-type": "image/png"})
    yield Fault("upload: unknown model", "/api/upload?model=../../etc", valid, headers={"content-type": "image/png"})
    yield Fault("upload: unknown rule", path + "&invert=perhaps", valid, headers={"content-type": "image/png"})


def hostile_tensors(model_id: str, image_shape: tuple[int, int, int]) -> Iterator[Fault]:
    """Bodies whose header lies."""
    C, H, W = image_shape
    size = 4 * C * H * W
    shape, zeros = [1, C, H, W], bytes(size)
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}
    bodies = {
        "empty": b"",
        "seven bytes": bytes(7),
        "100 MB header claimed": tensor_body({"images": entry}, zeros, length=100_000_000),
        "2^64-1 header claimed": tensor_body({"images": entry}, zeros, length=2**64 - 1),
        "header too short": tensor_body({"images": entry}, zeros, length=5),
        "header is a list": tensor_body([1, 2], zeros),
        "header is text": tensor_body(b"hello", zeros),
        "header is not UTF-8": tensor_body(b"\xff\xfe{}", zeros),
        "deep nesting": tensor_body(b"[" * 60_000, zeros),
        "huge number": tensor_body(b'{"images":' + b"9" * 50_000 + b"}", zeros),
        "no tensor": tensor_body({}, zeros),
        "many tensors": tensor_body({f"t{i}": {**entry, "data_offsets": [0, size]} for i in range(500)}, zeros),
        "entry is null": tensor_body({"images": None}, zeros),
        "negative offset": image_body(shape, zeros, offsets=[-size, 0]),
        "offset beyond the end": image_body(shape, zeros, offsets=[size, 2 * size]),
        "offsets the wrong way": image_body(shape, zeros, offsets=[size, 0]),
        "offsets of text": tensor_body({"images": {**entry, "data_offsets": ["0", "9"]}}, zeros),
        "absurd shape": image_body([2**40, 2**40, 2**40], zeros),
        "shape of zeros": image_body([0, C, H, W], b""),
        "negative shape": image_body([-1, C, H, W], zeros),
        "shape of truths": image_body([True, C, H, W], zeros),  # type: ignore[list-item]
        "shape of fractions": image_body([1.0, C, H, W], zeros),  # type: ignore[list-item]
        "65 pictures": image_body([65, C, H, W], bytes(65 * C * H * W), "U8"),
        "other size": image_body([1, C, H + 1, W], bytes(4 * C * (H + 1) * W)),
        "three dimensions": image_body([C, H, W], zeros),
        "unknown dtype": image_body(shape, zeros, "F8_E4M3"),
        "whole numbers": image_body(shape, bytes(2 * size), "I64"),
        "NaN": image_body(shape, struct.pack("<f", float("nan")) * (size // 4)),
        "infinity": image_body(shape, struct.pack("<f", float("inf")) * (size // 4)),
        "half NaN": image_body(shape, b"\x00\x7e" * (size // 4), "F16"),
        "pixels of 200": image_body(shape, struct.pack("<f", 200.0) * (size // 4)),
        "other name": tensor_body({"pictures": entry}, zeros),
        "50 MB": tensor_body({"images": entry}, bytes(50_000_000)),
        "pickle": b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94",
    }
    for name, body in bodies.items():
        for route in ("forward", "votes", "trace", "affine?kind=rotate", "python"):
            if len(body) < 1_000_000 or route == "forward":
                yield Fault(f"{route}: {name}", f"/api/models/{model_id}/{route}", body, headers=TENSORS)
    right = image_body(shape, zeros)
    yield Fault("forward: as JSON", f"/api/models/{model_id}/forward", right, headers={"content-type": "text/json"})
    yield Fault("decode: pictures", f"/api/models/{model_id}/decode", right, headers=TENSORS)
    for query in ("trace?iterations=0", "trace?iterations=11", "trace?iterations=x", "affine", "affine?kind=explode"):
        yield Fault(f"query: {query}", f"/api/models/{model_id}/{query}", right, headers=TENSORS)


def hostile_paths(model_id: str) -> Iterator[Fault]:
    """Paths out of the folder, queries out of range, foreign names."""
    paths = [
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/../../../app.py",
        "/....//....//etc/passwd",
        "/%00",
        "/app.js%00.html",
        "/C:%5CWindows%5Cwin.ini",
        "/api/models/..%2f..%2fetc/decoder",
        "/api/models/%2e%2e/decoder",
        f"/api/models/{model_id}@999999/decoder",
        f"/api/models/{model_id}@..%2f/decoder",
        f"/api/models/{model_id}@-1/decoder",
        f"/api/models/{'x' * 5000}/decoder",
        "/api/models/nobody/statistics",
        "/api/examples/-1",
        "/api/examples/99999999999999999999",
        "/api/examples/0?source=../../etc",
        "/api/examples?source=folder:/etc",
        "/api/examples?split=train",
        "/api/examples?label=-1",
        "/api/examples?label=1000",
        "/api/examples?random=0",
        "/api/examples?only_mistakes_of=nobody",
        f"/api/models/{model_id}/python?kind=shell",
        f"/api/models/{model_id}/python?kind=dimensions&vector=1,2",
        f"/api/models/{model_id}/python?kind=dimensions&vector=__import__('os')",
        f"/api/models/{model_id}/python?transform=');import os;('",
        f"/api/models/{model_id}/python?index=100000",
        f"/api/models/{model_id}/python?value=nan",
        f"/api/models/{model_id}/python?surprise=1",
    ]
    for path in paths:
        yield Fault(f"path: {path[:60]}", path, method="GET")
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"):
        yield Fault(f"method: {method}", "/api/models", method=method)
    for origin in ("http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"):
        yield Fault(f"origin: {origin}", "/api/models", method="GET", headers={"origin": origin})
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::1", "10.0.0.1"):
        yield Fault(f"host: {host}", "/api/models", method="GET", headers={"host": host})
    yield Fault("cross-site", "/api/examples/0", method="GET", headers={"sec-fetch-site": "cross-site"})


def chance_faults(model_id: str, image_shape: tuple[int, int, int], seed: int = 0) -> Iterator[Fault]:
    """Malformed requests without end; each is wrong by construction, and the same for the same seed."""
    generator = random.Random(seed)
    C, H, W = image_shape
    size = 4 * C * H * W
    valid = image_body([1, C, H, W], bytes(size))
    header_end = 8 + int.from_bytes(valid[:8], "little")
    pictures = [picture(kind) for kind in PICTURE_FORMATS]
    routes = ("forward", "votes", "trace", "affine?kind=shear", "python?kind=routing", "decode")
    while True:
        path = f"/api/models/{model_id}/{generator.choice(routes)}"
        kind = generator.randrange(8)
        if kind == 0:
            yield Fault("random bytes", path, generator.randbytes(generator.randrange(2000)), headers=TENSORS)
        elif kind == 1:
            yield Fault("cut short", path, valid[: generator.randrange(len(valid))], headers=TENSORS)
        elif kind == 2:
            length = generator.choice([generator.randrange(2**64), generator.randrange(header_end - 8)])
            yield Fault("wrong header length", path, struct.pack("<Q", length) + valid[8:], headers=TENSORS)
        elif kind == 3:
            place = generator.randrange(8, header_end - 1)
            broken = valid[:place] + bytes([generator.randrange(128, 192)]) + valid[place + 1 :]  # never UTF-8
            yield Fault("broken header", path, broken, headers=TENSORS)
        elif kind == 4:
            shape = [generator.choice([-1, 0, 1, 2, 65, 2**31, 2**63]) for _ in range(generator.randrange(7))]
            yield Fault("any shape", path, image_body([*shape, 3], bytes(size)), headers=TENSORS)
        elif kind == 5:
            place = 4 * generator.randrange(size // 4)
            values = bytearray(size)
            values[place : place + 4] = struct.pack("<f", generator.choice([np.nan, np.inf, -np.inf, 1e30, -5]))
            yield Fault("one wrong pixel", path, image_body([1, C, H, W], bytes(values)), headers=TENSORS)
        elif kind == 6:
            whole = generator.choice(pictures)
            part = whole[: generator.randrange(int(0.7 * len(whole)))]
            yield Fault("part of a picture", f"/api/upload?model={model_id}", part)
        else:
            letters = "".join(chr(generator.choice([37, 46, 47, 64, 92, 120, 233, 0x4E2D])) for _ in range(20))
            yield Fault("any id", f"/api/models/_{letters.replace('%', '%25')}/decoder", method="GET")
