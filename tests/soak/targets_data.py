"""Readers of data sets: every format, made small by program."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
from tests.published_files import digits, idx_bytes
from tests.soak.target import Target

from torchcaps.data.readers.cifar import cifar_python_split
from torchcaps.data.readers.idx import read_idx_folder
from torchcaps.data.readers.npz import read_npz_file
from torchcaps.data.source import TrainSplit


def _pictures(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def _npz_seeds(_: Path) -> list[bytes]:
    labels = np.arange(12) % 3
    whole = {"images": _pictures(12, 6, 6), "labels": labels}
    divided = {
        f"{part}_{name}": column
        for part in ("train", "val", "test")
        for name, column in (("images", _pictures(12, 5, 5, 3)), ("labels", labels.astype(np.uint8)[:, None]))
    }
    return [_npz(np.savez, whole), _npz(np.savez_compressed, divided)]


def _npz(save, columns: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    save(buffer, **columns)
    return buffer.getvalue()


def _read_npz(data: bytes, scratch: Path) -> object:
    path = scratch / "own.npz"
    path.write_bytes(data)
    return read_npz_file(path)


def _cifar_seeds(_: Path) -> list[bytes]:
    batch = {
        b"batch_label": b"training batch",
        b"labels": [3, 9],
        b"data": _pictures(2, 3072),
        b"filenames": [b"a"] * 2,
    }
    return [pickle.dumps(batch, protocol=protocol) for protocol in range(2, 5)]


def _read_cifar(data: bytes, _: Path) -> object:
    return cifar_python_split([data], TrainSplit)


def _idx_seeds(_: Path) -> list[bytes]:
    images, labels = digits(8, size=5, classes=4)
    return [_joined(idx_bytes(images), idx_bytes(labels))]


def _joined(first: bytes, *others: bytes) -> bytes:
    """Files that belong together as one input: the length of all but the last, then the contents."""
    parts = (first, *others)
    return b"".join(len(part).to_bytes(3, "big") for part in parts[:-1]) + b"".join(parts)


def _parts(data: bytes, count: int) -> list[bytes]:
    sizes = [int.from_bytes(data[3 * part : 3 * part + 3], "big") for part in range(count - 1)]
    rest, parts = data[3 * (count - 1) :], []
    for size in sizes:
        parts.append(rest[:size])
        rest = rest[size:]
    return [*parts, rest]


def _read_idx(data: bytes, scratch: Path) -> object:
    images, labels = _parts(data, 2)
    (scratch / "own-images-idx3-ubyte").write_bytes(images)
    (scratch / "own-labels-idx1-ubyte").write_bytes(labels)
    return read_idx_folder(scratch)


TARGETS = (
    Target("npz", _npz_seeds, _read_npz),
    Target("cifar", _cifar_seeds, _read_cifar),
    Target("idx", _idx_seeds, _read_idx),
)
