"""Small files in exactly the published formats, and the way to real data where a machine has it."""

from __future__ import annotations

import io
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


def idx_bytes(values: np.ndarray) -> bytes:
    """Bytes of an IDX file of unsigned bytes."""
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def digits(count: int, size: int = 28, classes: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Pictures whose every pixel differs from its neighbours, and labels in turn."""
    images = (np.arange(count * size * size) * 7 % 251).astype(np.uint8).reshape(count, size, size)
    return images, (np.arange(count) % classes).astype(np.uint8)


def norb_bytes(values: np.ndarray) -> bytes:
    """Bytes of a NORB matrix file: magic number, dimensions, at least three sizes, little-endian values."""
    magic = {"u1": 0x1E3D4C55, "i4": 0x1E3D4C54}[values.dtype.str[1:]]
    sizes = list(values.shape) + [1] * (3 - values.ndim)
    return struct.pack(f"<Ii{len(sizes)}i", magic, values.ndim, *sizes) + values.tobytes()


def picture_bytes(pixels: np.ndarray, kind: str = "PNG", mode: str | None = None) -> bytes:
    buffer = io.BytesIO()
    picture = Image.fromarray(pixels)
    (picture.convert(mode) if mode else picture).save(buffer, format=kind)
    return buffer.getvalue()


def write_picture_folder(folder: Path, counts: dict[str, int], size: int = 8) -> Path:
    """A folder with ``counts[name]`` grey PNG files for each class."""
    for value, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = np.full((size, size), 40 * value + number, np.uint8)
            (folder / name / f"{number:03}.png").write_bytes(picture_bytes(pixels))
    return folder


def real_data(*parts: str) -> Path:
    """Folder with real data sets: TORCHCAPS_DATA, or ``shared/data`` beside the checkout; skips when absent."""
    named = os.environ.get("TORCHCAPS_DATA")
    root = Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"
    if not (root / Path(*parts)).exists():
        pytest.skip(f"{Path(*parts)} is not in {root}; put the data sets there or set TORCHCAPS_DATA")
    return root
