"""IDX, the format of MNIST: a magic number, the sizes, then the values, integers big-endian.

0000  two zero bytes, one byte for the type (0x08 = unsigned byte), one byte for the number of dimensions
0004  one 32-bit size a dimension
....  the values, last dimension fastest
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.data.contents import read_contents
from torchcaps.data.source import AnySplit, Source, Split, TestSplit, TrainSplit
from torchcaps.data.splits import split_off_test
from torchcaps.errors import DataError

__all__ = ["idx_split", "parse_idx", "read_idx_folder"]

UNSIGNED_BYTE = 0x08


def parse_idx(data: bytes, dimensions: int, where: str = "IDX data") -> NDArray[np.uint8]:
    """The array in an IDX file of unsigned bytes; its number of dimensions must be the one expected."""
    header = 4 + 4 * dimensions
    if len(data) < header:
        raise DataError(f"{where}: an IDX file starts with {header} bytes of header, this one has {len(data)} bytes")
    expected_magic = bytes([0, 0, UNSIGNED_BYTE, dimensions])
    if data[:4] != expected_magic:
        raise DataError(
            f"{where}: expected the magic number 0x{expected_magic.hex()} (unsigned bytes, {dimensions} dimensions), "
            f"found 0x{data[:4].hex()}; is this another file, or images where labels belong?"
        )
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    expected_size = math.prod(shape)
    if len(data) - header != expected_size:
        raise DataError(
            f"{where}: the header announces {' × '.join(map(str, shape))} = {expected_size:,} values, "
            f"but {len(data) - header:,} follow; the file is truncated or damaged"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def idx_split(
    images: bytes, labels: bytes, kind: type[AnySplit], *, where: str = "IDX data", transposed: bool = False
) -> AnySplit:
    """Join a file of pictures and one of labels; ``transposed`` turns the pictures of EMNIST upright."""
    pixels = parse_idx(images, 3, f"{where} (images)")  # [N, H, W]
    classes = parse_idx(labels, 1, f"{where} (labels)")
    if len(pixels) != len(classes):
        raise DataError(f"{where}: {len(pixels)} images but {len(classes)} labels; the files do not belong together")
    if 0 in pixels.shape:
        raise DataError(f"{where}: the file announces {list(pixels.shape)}, which holds no picture")
    if transposed:
        pixels = pixels.transpose(0, 2, 1)
    return kind(
        images=torch.from_numpy(pixels[:, None].copy()),  # [N, 1, H, W]
        labels=torch.from_numpy(classes.astype(np.int64)),
    )


def read_idx_folder(folder: Path) -> Source:
    """Any folder with ``…images-idx3-ubyte`` and ``…labels-idx1-ubyte`` files, packed or not.

    A pair whose name contains "train" is to train on; "t10k" or "test" to test. A single pair is divided: a fifth,
    stratified, becomes the test set. Classes are named by their number.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; 'idx:' wants the folder that holds the IDX files")
    pairs = _pairs(folder)
    train_prefixes = [prefix for prefix in pairs if "train" in prefix]
    test_prefixes = [prefix for prefix in pairs if "t10k" in prefix or "test" in prefix]
    if len(pairs) not in (1, 2) or (len(pairs) == 2 and not (train_prefixes and test_prefixes)):
        raise DataError(
            f"{folder} should hold one pair of IDX files, or one to train and one to test; it holds "
            f"{len(pairs)}: {', '.join(sorted(pairs)) or 'none'}"
        )
    if len(pairs) == 2:
        train = _read_pair(folder, train_prefixes[0], pairs, TrainSplit)
        test = _read_pair(folder, test_prefixes[0], pairs, TestSplit)
        rule = "as in the files"
    else:
        train, test = split_off_test(_read_pair(folder, next(iter(pairs)), pairs, Split), 0.2)
        rule = "a fifth held out, stratified by class, seed 0"
    classes = int(max(train.labels.max(), test.labels.max())) + 1
    return Source(
        name=f"idx:{folder}",
        train=train,
        test=test,
        classes=tuple(map(str, range(classes))),
        licence="yours to know",
        origin=str(folder),
        split_rule=rule,
    )


def _read_pair(folder: Path, prefix: str, pairs: dict[str, tuple[Path, Path]], kind: type[AnySplit]) -> AnySplit:
    images, labels = pairs[prefix]
    return idx_split(read_contents(images), read_contents(labels), kind, where=str(folder / prefix))


def _pairs(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Prefix of the file name → (images, labels)."""
    found: dict[str, dict[str, Path]] = {"images": {}, "labels": {}}
    for path in sorted(folder.iterdir()):
        name = path.name.removesuffix(".gz")
        for part, endings in (
            ("images", ("images-idx3-ubyte", "images.idx3-ubyte")),
            ("labels", ("labels-idx1-ubyte", "labels.idx1-ubyte")),
        ):
            for ending in endings:
                if name.endswith(ending):
                    found[part].setdefault(name.removesuffix(ending), path)
    alone = found["images"].keys() ^ found["labels"].keys()
    if alone:
        raise DataError(f"{folder}: {', '.join(sorted(alone))}… has images without labels or labels without images")
    return {prefix: (found["images"][prefix], found["labels"][prefix]) for prefix in found["images"]}
