"""The reader of MATLAB 5 files against SciPy's, in both byte orders, and what it refuses."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from published_files import real_data
from torchcaps.data.readers.mat5 import read_mat
from torchcaps.errors import DataError

SCIPY_FILES = Path(scipy.io.__file__).parent / "matlab" / "tests" / "data"
KINDS = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8")
FIELDS = {"image": np.arange(6, dtype=np.uint8).reshape(2, 3), "note": "text", "empty": np.zeros((0, 0))}


def mat(packed: bool = False, **variables) -> bytes:
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, variables, do_compression=packed)
    return buffer.getvalue()


def element(kind: int, contents: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}II", kind, len(contents)) + contents + bytes(-len(contents) % 8)


def variable(name: bytes, shape: tuple[int, ...], stored: tuple[int, bytes], kind: int = 6, order: str = "<") -> bytes:
    """A matrix element, in the byte order asked for."""
    flags = element(6, struct.pack(f"{order}II", kind, 0), order)
    sizes = element(5, struct.pack(f"{order}{len(shape)}i", *shape), order)
    return element(14, flags + sizes + element(1, name, order) + element(*stored, order), order)


def file_of(*elements: bytes, order: str = "<") -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + (b"\0\1IM" if order == "<" else b"\1\0MI") + b"".join(elements)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (2, 3, 4, 5), (0, 3), (1, 1001)])
def test_arrays_are_those_of_scipy(shape, kind, packed):
    values = (np.arange(np.prod(shape)) % 100).astype(kind).reshape(shape)
    data = mat(packed, x=values, other="text", long_name_of_a_variable=values)
    expected = scipy.io.loadmat(io.BytesIO(data))
    for name, found in read_mat(data, ("long_name_of_a_variable", "x")).items():
        assert found.dtype == expected[name].dtype
        assert found.shape == expected[name].shape
        assert np.array_equal(found, expected[name])


@pytest.mark.parametrize("packed", [False, True])
def test_the_numeric_fields_of_a_record_are_read(packed):
    record = read_mat(mat(packed, r=FIELDS), ("r",))["r"]
    assert set(record) == {"image", "empty"}
    assert np.array_equal(record["image"], FIELDS["image"])


@pytest.mark.parametrize("order", ["<", ">"])
def test_whole_numbers_stored_in_fewer_bytes_and_both_byte_orders(order):
    stored = struct.pack(f"{order}3h", 1, -2, 300)
    found = read_mat(file_of(variable(b"x", (1, 3), (3, stored), order=order), order=order), ("x",))["x"]
    assert found.tolist() == [[1, -2, 300]]
    assert found.dtype == np.int16


@pytest.mark.skipif(not SCIPY_FILES.is_dir(), reason="this SciPy comes without its tests")
@pytest.mark.parametrize(
    "name", ["testdouble_6.1_SOL2", "testmatrix_7.4_GLNX86", "test3dmatrix_6.1_SOL2", "testbool_8_WIN64"]
)
def test_files_that_matlab_wrote_are_read(name):
    data = (SCIPY_FILES / f"{name}.mat").read_bytes()
    expected = {key: value for key, value in scipy.io.loadmat(io.BytesIO(data)).items() if key[:2] != "__"}
    for key, found in read_mat(data, tuple(expected)).items():
        assert np.array_equal(found, expected[key])


def test_a_real_file_is_that_of_scipy():
    data = (real_data("coil20", "COIL20.mat") / "coil20" / "COIL20.mat").read_bytes()
    expected = scipy.io.loadmat(io.BytesIO(data))
    assert all(np.array_equal(found, expected[name]) for name, found in read_mat(data, ("X", "Y")).items())


def bomb(unpacked: int) -> bytes:
    """A compressed matrix of zeros that states its size truly."""
    machine = zlib.compressobj(9)
    whole = variable(b"x", (1, unpacked), (2, b""), kind=9)
    start = whole[:-8] + struct.pack("<II", 2, unpacked)
    start = struct.pack("<II", 14, len(start) - 8 + unpacked) + start[8:]
    pieces = [
        machine.compress(start),
        *(machine.compress(bytes(1 << 20)) for _ in range(unpacked >> 20)),
        machine.flush(),
    ]
    packed = b"".join(pieces)
    return file_of(struct.pack("<II", 15, len(packed)) + packed)


WHOLE = variable(b"x", (1, 3), (2, b"abc"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a MATLAB 5 file"),
        (mat(x=[1])[:100], "not a MATLAB 5 file"),
        (file_of()[:124] + b"\0\2IM", "7.3 file.*-v7"),
        (file_of(WHOLE[:-8]), "announces"),
        (file_of(struct.pack("<II", 14, 2**32 - 1) + WHOLE[8:]), "announces 4,294,967,295 bytes"),
        (file_of(variable(b"x", (1, 4), (2, b"abc"))), "1 × 4 values and brings 3"),
        (file_of(variable(b"x", (-1, -3), (2, b"abc"))), "of the shape"),
        (file_of(variable(b"x", (3,), (2, b"abc"))), "of the shape"),
        (file_of(variable(b"x", (2**31 - 1,) * 32, (2, b"abc"))), "brings 3"),
        (file_of(variable(b"x", (1, 3), (18, b"abc"))), "values of type 18"),
        (file_of(variable(b"x", (1, 3), (9, b"abc"))), "values of type 9"),
        (file_of(variable(b"y", (1, 3), (2, b"abc"))), "expected the variable 'x', found y"),
        (file_of(element(14, b"")), "expected an element of type 6"),
        (file_of(element(7, b"abcd")), "expected an element of type 14"),
        (file_of(element(15, zlib.compress(WHOLE[:-3]))), "has others"),
        (file_of(element(15, zlib.compress(WHOLE)[:-2])), "has others"),
        (file_of(element(15, b"no zlib")), "incorrect header check"),
        (mat(x="text"), "found it text"),
        (mat(x=np.array([[1, "a"]], dtype=object)), "found it a cell array"),
        (mat(x=np.array([1j])), "found it complex"),
        (mat(x=np.zeros(2, [("a", "O")])), "expected 'x' as one record"),
        (file_of(variable(b"x", (1, 1), (2, b"a"), kind=16)), "found it a function"),
        (file_of(variable(b"x", (1, 1), (2, b"a"), kind=17)), "found none"),
        (bomb(128 << 20), "more than 100 times its size"),
    ],
    ids=lambda value: "bytes" if isinstance(value, bytes) else None,  # some hold the time
)
def test_other_files_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        read_mat(data, ("x",))


def test_a_bomb_of_zlib_takes_no_memory():
    data = bomb(128 << 20)
    assert len(data) < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="save it without compression"):
            read_mat(data, ("x",))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
