"""The reader of .npz files against NumPy's, and files whose headers or sizes lie."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from torchcaps.data.readers.plain_arrays import parse_npz
from torchcaps.errors import DataError

ARRAYS = {
    "bytes": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "columns": np.asfortranarray(np.arange(12, dtype=np.int16).reshape(3, 4)),
    "big": np.arange(3, dtype=">i4"),
    "half": np.array([0.5, np.nan], np.float16),
    "double": np.array(1.5),
    "truth": np.array([True, False]),
    "text": np.array(["a", "bä", "𝛼"]),
    "swapped": np.array(["a", "bä"]).astype(">U2"),
    "ascii": np.array([b"a", b"bb"]),
    "none": np.zeros((0, 3)),
    "days": np.array(["2020-01-01"], "M8[D]"),
    "waves": np.array([1 + 2j]),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_are_those_of_numpy(save):
    buffer = io.BytesIO()
    save(buffer, **ARRAYS)
    found = parse_npz(buffer.getvalue())
    assert list(found) == list(ARRAYS)
    for name, expected in ARRAYS.items():
        assert found[name].dtype == expected.dtype.newbyteorder("=")
        assert np.array_equal(found[name], expected, equal_nan=expected.dtype.kind == "f")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format_is_read(version):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, ARRAYS["bytes"], version)
    assert np.array_equal(parse_npz(zipped(buffer.getvalue()))["x"], ARRAYS["bytes"])


def zipped(*members: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, member in zip(("x.npy", "x"), members, strict=False):
            archive.writestr(zipfile.ZipInfo(name), member, method)
    return buffer.getvalue()


def array(header: str, values: bytes = b"abc") -> bytes:
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + values


def described(kind: str = "|u1", shape: str = "(3,)", values: bytes = b"abc") -> bytes:
    return array(f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape}, }}", values)


@pytest.mark.parametrize(
    "header",
    [
        '{"shape": (3,), "descr": "u1", "fortran_order": False}',  # other programs than NumPy
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3L,), }\n",  # Python 2
        "{'fortran_order':True,'shape':(3),'descr':'<u1'}",
    ],
)
def test_headers_of_other_programs_are_read(header):
    assert parse_npz(zipped(array(header)))["x"].tolist() == [97, 98, 99]


def test_a_truth_is_zero_or_one():
    assert parse_npz(zipped(described("|b1", values=b"\0\1\7")))["x"].view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (b"", "not an array"),
        (b"\x93NUMPY\4\0" + b"a" * 60, "not an array"),
        (b"\x93NUMPY\2\0\xff\xff\xff\xff", "longer than 10,000 bytes"),
        (array("(" * 9000), "numbers or of text"),
        (array("-" * 9000 + "1"), "numbers or of text"),
        (array("__import__('os').mkdir('it-ran')"), "numbers or of text"),
        (array("{'descr': __import__('os').mkdir('it-ran'), 'fortran_order': False, 'shape': (3,)}"), "of text"),
        (array("{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (3,)}"), "objects and records are refused"),
        (array("{'descr': '|u1', 'fortran_order': False}"), "numbers or of text"),
        (array("{'descr': '|u1', 'fortran_order': 'yes', 'shape': (3,)}"), "damaged header"),
        (described("|O"), "found the type '|O'"),
        (described("|V8"), "found the type '|V8'"),
        (described("<M8[25s]"), "found the type"),
        (described("<c4"), "found the type"),
        (described("<U99999999"), "found the type"),
        (described("|S0"), "found the type"),
        (described(shape="(4,)"), "announces 4 values of 1 bytes, but 3 bytes follow"),
        (described(shape="(2,)"), "announces 2 values"),
        (described(shape="(-3,)"), "numbers or of text"),
        (described(shape="()"), "announces one values"),
        (described(shape="(4294967296, 4294967296, 4294967296)"), "damaged header"),
        (described(shape="(0, 9999999999999999999)", values=b""), "damaged header"),
        (described(shape=f"({'1, ' * 40})", values=b"a"), "damaged header"),
        (described("<U1", "(1,)", b"\0\0\x11\0"), "characters that do not exist"),
        (described("<U1", "(1,)", b"\0\xd8\0\0"), "characters that do not exist"),
    ],
)
def test_other_members_are_refused(member, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        parse_npz(zipped(member))
    assert not (tmp_path / "it-ran").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (described(), r"write one with numpy\.savez"),
        (zipped(described(), described()), "two arrays named 'x'"),
        (zipped(described(), method=zipfile.ZIP_BZIP2), "another way than deflate"),
        (zipped(described())[:-30], "damaged"),
    ],
)
def test_other_archives_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        parse_npz(data)


@pytest.mark.parametrize(("stated", "message"), [(None, "100 times its size"), (100, "damaged")])
def test_a_bomb_takes_no_memory(stated, message):
    """80 MB of zeros in 80 kB; once more with a directory that states 100 bytes."""
    size = 80 << 20
    data = bytearray(zipped(described(shape=f"({size},)", values=bytes(size))))
    assert len(data) < 100_000
    if stated is not None:
        place = data.index(b"PK\1\2") + 24
        data[place : place + 4] = stated.to_bytes(4, "little")
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=message):
            parse_npz(bytes(data))
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()
