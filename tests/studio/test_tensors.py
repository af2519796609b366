"""The format on the wire: the same as the safetensors library's, and closed to everything else."""

from __future__ import annotations

import json
import struct

import pytest
import safetensors.torch
import torch

from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.tensors import pack_tensors, unpack_tensors


def test_round_trip_keeps_names_shapes_types_and_values():
    tensors = {
        "a": torch.randn(2, 3),
        "b": torch.randn(4, 1).half(),
        "c": torch.arange(6, dtype=torch.uint8).reshape(1, 2, 3),
        "d": torch.tensor([-5, 2**40]),
        "scalar": torch.tensor(1.5),
        "empty": torch.empty(0, 3),
    }
    back = unpack_tensors(pack_tensors(tensors, {"label": "3"}))
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor)


def test_written_and_read_as_the_library_does():
    tensors = {"x": torch.randn(5), "y": torch.arange(3)}
    theirs = safetensors.torch.load(pack_tensors(tensors))
    assert all(torch.equal(theirs[name], tensor) for name, tensor in tensors.items())
    assert all(torch.equal(tensors[n], t) for n, t in unpack_tensors(safetensors.torch.save(tensors)).items())


def test_unaligned_data_is_read():
    """A header of odd length puts floats at odd addresses."""
    values = struct.pack("<2f", 1.0, 2.0)
    header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    header += b" " * (1 - len(header) % 2)
    assert len(header) % 2 == 1
    assert unpack_tensors(struct.pack("<Q", len(header)) + header + values)["x"].tolist() == [1.0, 2.0]


def test_a_body_is_not_shared_with_the_tensors():
    body = pack_tensors({"x": torch.zeros(3)})
    unpack_tensors(body)["x"].add_(1)
    assert unpack_tensors(body)["x"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}, "dtypes F32"),
        ({"dtype": ["F32"], "shape": [2], "data_offsets": [0, 8]}, "dtypes F32"),
        ({"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}, "needs 12 bytes"),
        ({"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 8]}, "needs"),
        ({"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}, "shape"),
        ({"dtype": "F32", "shape": [1] * 9, "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}, "shape"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}, "data_offsets"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}, "data_offsets"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [0]}, "data_offsets"),
        ([], "must be"),
    ],
    ids=range(11),
)
def test_a_header_that_lies_is_refused_in_words(entry, message):
    header = json.dumps({"x": entry}).encode()
    with pytest.raises(RefusalError, match=message):
        unpack_tensors(struct.pack("<Q", len(header)) + header + bytes(8))


def test_many_tensors_are_refused():
    assert len(unpack_tensors(pack_tensors({str(n): torch.zeros(1) for n in range(16)}))) == 16
    with pytest.raises(RefusalError, match="at most 16"):
        unpack_tensors(pack_tensors({str(n): torch.zeros(1) for n in range(18)}))
