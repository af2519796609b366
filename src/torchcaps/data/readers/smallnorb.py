"""smallNORB's binary ``-mat`` files: a magic number, the sizes, then the values, integers little-endian.

A header names at least three sizes, even when the array has fewer dimensions; the surplus ones are ignored.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.data.source import AnySplit
from torchcaps.errors import DataError

__all__ = ["parse_norb_matrix", "smallnorb_split"]

MATRIX_TYPES: dict[int, np.dtype[Any]] = {
    0x1E3D4C51: np.dtype("<f4"),
    0x1E3D4C53: np.dtype("<f8"),
    0x1E3D4C54: np.dtype("<i4"),
    0x1E3D4C55: np.dtype("u1"),
    0x1E3D4C56: np.dtype("<i2"),
}
PACKED_MATRIX = 0x1E3D4C52
INSTANCES = 10  # toys of a category, numbered 0…9


def parse_norb_matrix(data: bytes, where: str = "NORB matrix") -> NDArray[Any]:
    """The array in a binary matrix file, in the type that its magic number states."""
    if len(data) < 20:
        raise DataError(f"{where}: the header has 20 bytes or more, the file {len(data)}")
    magic, dimensions = struct.unpack("<Ii", data[:8])
    if magic not in MATRIX_TYPES:
        hint = " (a packed matrix, which smallNORB does not use)" if magic == PACKED_MATRIX else ""
        known = ", ".join(f"0x{number:08X}" for number in MATRIX_TYPES)
        raise DataError(f"{where}: expected one of the magic numbers {known}, found 0x{magic:08X}{hint}")
    if not 1 <= dimensions <= 8:
        raise DataError(f"{where}: the header announces {dimensions} dimensions; smallNORB has 1 to 4")
    header = 8 + 4 * max(3, dimensions)
    if len(data) < header:
        raise DataError(f"{where}: the file ends inside its header")
    shape = struct.unpack(f"<{dimensions}i", data[8 : 8 + 4 * dimensions])
    kind = MATRIX_TYPES[magic]
    expected = math.prod(shape) * kind.itemsize
    if min(shape) < 1 or len(data) - header != expected:
        raise DataError(
            f"{where}: the header announces {' × '.join(map(str, shape))} values of {kind.itemsize} bytes, "
            f"but {len(data) - header:,} bytes follow; the file is truncated or damaged"
        )
    return np.frombuffer(data, kind, offset=header).reshape(shape)


def smallnorb_split(
    pictures: bytes, categories: bytes, info: bytes, kind: type[AnySplit], *, where: str = "smallNORB"
) -> AnySplit:
    """Join the ``-dat``, ``-cat`` and ``-info`` files of one part.

    Shape:
        images uint8 ``[N, 2, 96, 96]``, the left and the right eye; attributes ``instance`` (0…9), ``elevation``
        (degrees from the horizontal, 30…70), ``azimuth`` (degrees), ``lighting`` (0…5). A group is one toy, so a
        validation split holds whole toys out, as the published test set does.
    """
    pixels = parse_norb_matrix(pictures, f"{where} (-dat)")
    labels = parse_norb_matrix(categories, f"{where} (-cat)")
    facts = parse_norb_matrix(info, f"{where} (-info)")
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[1] != 2:
        raise DataError(f"{where}: -dat should hold bytes [N, 2, H, W], found {pixels.dtype} {list(pixels.shape)}")
    if labels.dtype != np.int32 or labels.shape != (len(pixels),):
        raise DataError(f"{where}: {len(pixels)} pairs of pictures, but -cat holds {labels.dtype} {list(labels.shape)}")
    if facts.dtype != np.int32 or facts.shape != (len(pixels), 4):
        raise DataError(f"{where}: {len(pixels)} pairs of pictures, but -info holds {facts.dtype} {list(facts.shape)}")
    category = torch.from_numpy(labels.astype(np.int64))
    instance, elevation, azimuth, lighting = torch.from_numpy(facts.astype(np.int64)).unbind(dim=1)
    if not bool(((instance >= 0) & (instance < INSTANCES)).all()):
        raise DataError(
            f"{where}: -info should number the toys 0 to 9, found {facts[:, 0].min()} to {facts[:, 0].max()}"
        )
    return kind(
        images=torch.from_numpy(pixels.copy()),
        labels=category,
        groups=category * INSTANCES + instance,
        attributes={
            "instance": instance,
            "elevation": 30 + 5 * elevation,
            "azimuth": 10 * azimuth,
            "lighting": lighting,
        },
    )
