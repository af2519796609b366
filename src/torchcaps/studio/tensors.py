"""Tensors on the wire, both ways: the safetensors format, read with limits that suit a stranger's bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor

from torchcaps.studio.refusal import RefusalError

__all__ = ["MEDIA_TYPE", "pack_tensors", "unpack_tensors"]

MEDIA_TYPE = "application/x-torchcaps-tensors"
DTYPES: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "U8": np.dtype("u1"),
    "I64": np.dtype("<i8"),
}
PREFIX = 8  # bytes that hold the length of the header
MOST_HEADER_BYTES = 65_536
MOST_TENSORS = 16
MOST_DIMENSIONS = 8


def pack_tensors(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """Write tensors as the bytes of a safetensors file.

    Example:
        >>> import torch
        >>> from torchcaps.studio.tensors import pack_tensors, unpack_tensors
        >>> unpack_tensors(pack_tensors({"values": torch.tensor([1.0, 2.0])}))
        {'values': tensor([1., 2.])}
    """
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return safetensors.torch.save(plain, dict(metadata) if metadata else None)


def unpack_tensors(body: bytes) -> dict[str, Tensor]:
    """Read what :func:`pack_tensors` or the page wrote; anything else is a :class:`RefusalError` that says why.

    Every length is checked against the bytes that are there before anything is made from it.
    """
    header, start = _read_header(body)
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            tensors[name] = _read_tensor(name, entry, body, start)
    if not tensors:
        raise RefusalError("the body holds no tensor; name at least one in its header")
    return tensors


def _read_header(body: bytes) -> tuple[dict[str, Any], int]:
    if len(body) < PREFIX:
        raise RefusalError(f"a tensor body begins with {PREFIX} bytes of header length, got {len(body)} bytes in all")
    length = int.from_bytes(body[:PREFIX], "little")
    if length > MOST_HEADER_BYTES or length > len(body) - PREFIX:
        raise RefusalError(
            f"the header is said to have {length} bytes; {len(body) - PREFIX} are there and {MOST_HEADER_BYTES} are "
            "the limit. Send the length as 8 bytes, lowest first"
        )
    try:
        header = json.loads(body[PREFIX : PREFIX + length])
    except (ValueError, RecursionError) as error:
        raise RefusalError("the header is not JSON; write {name: {dtype, shape, data_offsets}}") from error
    if not isinstance(header, dict) or len(header) > MOST_TENSORS + 1:
        raise RefusalError(f"the header must be a JSON object of at most {MOST_TENSORS} tensors")
    return header, PREFIX + length


def _read_tensor(name: str, entry: object, body: bytes, start: int) -> Tensor:
    if not isinstance(entry, dict):
        raise RefusalError(f"{name!r} must be {{dtype, shape, data_offsets}} in the header")
    dtype = DTYPES.get(str(entry.get("dtype")))
    if dtype is None:
        raise RefusalError(f"{name!r} must have one of the dtypes {', '.join(DTYPES)}")
    shape = _whole_numbers(entry.get("shape"))
    offsets = _whole_numbers(entry.get("data_offsets"))
    if shape is None or len(shape) > MOST_DIMENSIONS:
        raise RefusalError(f"the shape of {name!r} must be a list of up to {MOST_DIMENSIONS} whole numbers from 0")
    if offsets is None or len(offsets) != 2 or not offsets[0] <= offsets[1] <= len(body) - start:
        raise RefusalError(
            f"data_offsets of {name!r} must be [begin, end] inside the {len(body) - start} bytes of data"
        )
    count = math.prod(shape)
    if count * dtype.itemsize != offsets[1] - offsets[0]:
        raise RefusalError(
            f"{name!r} of this shape needs {count * dtype.itemsize} bytes, but its data_offsets hold "
            f"{offsets[1] - offsets[0]}"
        )
    values = np.frombuffer(body, dtype, count, start + offsets[0] if count else 0)
    tensor = torch.from_numpy(values.reshape(shape).copy())  # its own memory: the body is read-only
    if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
        raise RefusalError(f"{name!r} holds NaN or infinity; send finite numbers")
    return tensor


def _whole_numbers(value: object) -> list[int] | None:
    if isinstance(value, list) and all(type(number) is int and number >= 0 for number in value):
        return value
    return None
