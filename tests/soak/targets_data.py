"""Readers of published array formats, and of ``.npz`` files: every format, made small by program."""

from __future__ import annotations

import gzip
import io
import pickle
from pathlib import Path

import numpy as np
import scipy.io
from tests.published_files import digits, idx_bytes, norb_bytes
from tests.soak.formats import (
    joined,
    mutate_gzip,
    mutate_instructions,
    mutate_mat,
    mutate_npz,
    mutate_one_of,
    parts_of,
)
from tests.soak.target import Target

from torchcaps.data.assemble import assemble
from torchcaps.data.catalog import CATALOG
from torchcaps.data.readers.idx import read_idx_folder
from torchcaps.data.readers.npz import read_npz_file
from torchcaps.data.source import Source


def _pictures(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def _assembled(name: str, *contents: bytes) -> Source:
    """A named set from its files, the training half of affNIST left out."""
    info = CATALOG[name]
    names = [file.name for file in info.file_sets[0].files]
    train, validation, test = assemble(info, dict(zip(names, contents, strict=True)))
    return Source(name, train, test, info.classes, info.licence, info.origin, validation=validation)


def _npz_seeds(_: Path) -> list[bytes]:
    labels = np.arange(12) % 3
    whole = {"images": _pictures(12, 6, 6), "labels": labels}
    divided = {
        f"{part}_{name}": column
        for part in ("train", "val", "test")
        for name, column in (("images", _pictures(12, 5, 5, 3)), ("labels", labels.astype(np.uint8)[:, None]))
    }
    grouped = whole | {"groups": np.arange(12) // 2, "classes": np.array(["a", "bb", "c"])}
    several = {"images": _pictures(12, 6, 6), "labels": np.eye(3, dtype=bool)[labels], "groups": np.arange(12) // 2}
    return [
        _npz(np.savez, whole),
        _npz(np.savez_compressed, divided),
        _npz(np.savez, grouped),
        _npz(np.savez_compressed, several),
    ]


def _npz(save, columns: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    save(buffer, **columns)
    return buffer.getvalue()


def _read_npz(data: bytes, scratch: Path) -> object:
    path = scratch / "own.npz"
    path.write_bytes(data)
    return read_npz_file(path)


def _chest_seeds(_: Path) -> list[bytes]:
    rows = 24
    columns = {
        "images": _pictures(rows, 6, 6),
        "covid19": (np.arange(rows) // 3 % 2).astype(np.uint8),
        "patientid": np.array([f"p{row // 3}" for row in range(rows)]),
        "finding": np.array(["todo" if row < 3 else "Pneumonia" for row in range(rows)]),
    }
    return [_npz(np.savez, columns), _npz(np.savez_compressed, columns | {"url": columns["finding"]})]


def _read_chest(data: bytes, _: Path) -> object:
    return _assembled("chest-xray", data)


def _cifar_seeds(_: Path) -> list[bytes]:
    batch = {
        b"batch_label": b"training batch",
        b"labels": [3, 9],
        b"data": _pictures(2, 3072),
        b"filenames": [b"a"] * 2,
    }
    return [pickle.dumps(batch, protocol=protocol) for protocol in range(2, 6)]


def _read_cifar(data: bytes, _: Path) -> object:
    names = [file.name for file in CATALOG["cifar10"].file_sets[1].files]
    return assemble(CATALOG["cifar10"], dict.fromkeys(names, data))


def _cifar_binary_seeds(_: Path) -> list[bytes]:
    return [np.concatenate([np.array([[3], [9]], np.uint8), _pictures(2, 3072)], axis=1).tobytes()]


def _read_cifar_binary(data: bytes, _: Path) -> object:
    return _assembled("cifar10", *[data] * 6)


def _idx_seeds(_: Path) -> list[bytes]:
    images, labels = map(idx_bytes, digits(8, size=5, classes=4))
    return [joined(images, labels), joined(gzip.compress(images, mtime=0), gzip.compress(labels, mtime=0))]


def _read_idx(data: bytes, scratch: Path) -> object:
    images, labels = parts_of(data, 2)
    (scratch / "own-images-idx3-ubyte").write_bytes(images)
    (scratch / "own-labels-idx1-ubyte").write_bytes(labels)
    return read_idx_folder(scratch)


def _letters_seeds(_: Path) -> list[bytes]:
    images, labels = digits(26, size=5, classes=26)
    return [joined(idx_bytes(images), idx_bytes(labels + 1))]


def _read_letters(data: bytes, _: Path) -> object:
    return _assembled("emnist-letters", *parts_of(data, 2) * 2)


def _norb_seeds(_: Path) -> list[bytes]:
    categories = (np.arange(10) % 5).astype("<i4")
    facts = np.stack([np.arange(10) // 5 + 4, np.arange(10) % 9, np.arange(10) % 18 * 2, np.arange(10) % 6], axis=1)
    return [joined(*map(norb_bytes, (_pictures(10, 2, 6, 6), categories, facts.astype("<i4"))))]


def _read_norb(data: bytes, _: Path) -> object:
    return _assembled("smallnorb", *parts_of(data, 3) * 2)


def _mat_seeds(variables: dict[str, object]) -> list[bytes]:
    seeds = []
    for packed in (False, True):
        buffer = io.BytesIO()
        scipy.io.savemat(buffer, variables, do_compression=packed)
        seeds.append(buffer.getvalue())
    return seeds


def _svhn_seeds(_: Path) -> list[bytes]:
    return _mat_seeds({"X": _pictures(32, 32, 3, 3), "y": np.array([[1], [10], [9]], np.uint8)})


def _read_svhn(data: bytes, _: Path) -> object:
    return _assembled("svhn", data, data)


def _coil_seeds(_: Path) -> list[bytes]:
    labels = np.repeat(np.arange(1, 3), 72).astype(float)[:, None]
    whole = _mat_seeds({"X": np.arange(144 * 1024).reshape(144, 1024) % 256 / 255, "Y": labels})
    return whole[1:] + _mat_seeds({"X": _pictures(144, 1024), "Y": labels})


def _read_coil(data: bytes, _: Path) -> object:
    return _assembled("coil20", data), _assembled("coil20-azimuths", data)


def _affnist_seeds(_: Path) -> list[bytes]:
    record = {
        "affine_params": np.zeros((6, 4)),
        "human_readable_transform": np.zeros((6, 4)),
        "image": _pictures(1600, 4),
        "label_int": np.arange(4, dtype=np.uint8)[None],
        "note": "text",
    }
    return _mat_seeds({"affNISTdata": record})


def _read_affnist(data: bytes, _: Path) -> object:
    return _assembled("affnist", data)


TARGETS = (
    Target("npz", _npz_seeds, _read_npz, mutate_npz),
    Target("chest", _chest_seeds, _read_chest, mutate_npz),
    Target("cifar", _cifar_seeds, _read_cifar, mutate_instructions),
    Target("cifar-binary", _cifar_binary_seeds, _read_cifar_binary),
    Target("idx", _idx_seeds, _read_idx, mutate_one_of(2, mutate_gzip)),
    Target("letters", _letters_seeds, _read_letters, mutate_one_of(2)),
    Target("smallnorb", _norb_seeds, _read_norb, mutate_one_of(3)),
    Target("svhn", _svhn_seeds, _read_svhn, mutate_mat),
    Target("coil20", _coil_seeds, _read_coil, mutate_mat),
    Target("affnist", _affnist_seeds, _read_affnist, mutate_mat),
)
