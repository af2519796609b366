"""Pickles of a CIFAR-10 batch are followed as data: what NumPy writes is read, and all else is refused by name."""

from __future__ import annotations

import pickle
import struct
import tracemalloc

import numpy as np
import pytest

from torchcaps.data.readers.plain_pickle import read_plain_pickle
from torchcaps.errors import DataError

PIXELS = (np.arange(3 * 3072) % 251).astype(np.uint8).reshape(3, 3072)


def text(value: str) -> bytes:
    return b"U" + bytes([len(value)]) + value.encode()


def array_of(dtype: bytes, values: bytes = b"\7" * 8, shape: tuple[int, int] = (1, 8)) -> bytes:
    """A dictionary with one array as Python 2 wrote it, ``dtype`` being the instructions that make its type."""
    sizes = b"".join(b"J" + struct.pack("<i", size) for size in shape)
    return (
        b"\x80\x02}" + text("data") + b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R"
        b"(K\1" + sizes + b"\x86" + dtype + b"\x89B" + struct.pack("<I", len(values)) + values + b"tbs."
    )


def dtype_of(kind: str = "u1", state: bytes = b"(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0t") -> bytes:
    return b"cnumpy\ndtype\n" + text(kind) + b"K\0K\1\x87R" + state + b"b"


OBJECTS = dtype_of("O8", b"(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x3ft")
FORGED = b"(K\3U\1|N" + text("f") + b"\x85}" + text("f") + OBJECTS + b"K\0\x86sK\x08K\x01K\0t"


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("module", [b"numpy.core.", b"numpy._core."])
def test_what_every_python_and_numpy_writes_is_read(protocol, order, module):
    batch = {b"data": np.array(PIXELS, order=order), b"labels": [1, 2, 300], b"filenames": [b"a", "b"], "text": "é"}
    data = pickle.dumps(batch, protocol=protocol)
    if protocol < 4:  # where names are lines
        data = data.replace(b"cnumpy._core.", b"c" + module).replace(b"cnumpy.core.", b"c" + module)
    found = read_plain_pickle(data)
    assert np.array_equal(found.pop(b"data"), PIXELS)
    assert found == {b"labels": [1, 2, 300], b"filenames": [b"a", "b"], b"text": "é"}


def test_the_instructions_of_python_2_are_read():
    found = read_plain_pickle(array_of(dtype_of()))
    assert found[b"data"].tolist() == [[7] * 8]
    assert read_plain_pickle(b"\x80\x02}q\1(" + text("labels") + b"]q\2(K\1M\0\1J\xff\xff\xff\xffeu.") == {
        b"labels": [1, 256, -1]
    }


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80\x02cos\nsystem\n" + text("true") + b"\x85R.", r"asks for os\.system"),
        (b"\x80\x04\x8c\2os\x8c\6system\x93\x8c\4true\x85R.", r"asks for os\.system"),
        (b"\x80\x04}]\x8c\1x\x93.", "asks for"),
        (b"\x80\x02cnumpy\nload\n.", r"asks for numpy\.load"),
        (b"(" + text("true") + b"ios\nsystem\n.", "instruction INST"),
        (b"(cnumpy\ndtype\n" + text("u1") + b"o.", "instruction OBJ"),
        (b"cnumpy\nndarray\n)\x81.", "instruction NEWOBJ"),
        (b"cnumpy\nndarray\n)}\x92.", "instruction NEWOBJ_EX"),
        (b"Pid\n.", "instruction PERSID"),
        (text("id") + b"Q.", "instruction BINPERSID"),
        (b"\x82\1.", "instruction EXT1"),
        (b"I1\n.", "instruction INT"),
        (b"\x97.", "instruction NEXT_BUFFER"),
        (b"\xff.", "instruction 0xFF"),
        (array_of(dtype_of("V8", FORGED)), "type b'V8'"),
        (array_of(dtype_of("u1", FORGED)), "type b'O8'"),
        (array_of(OBJECTS), "type b'O8'"),
        (array_of(dtype_of(state=b"(K\3U\1|NNNJ\0\0\0\x7fK\1K\0t")), "not made by NumPy"),
        (array_of(dtype_of(state=b"(K\3U\1|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x3ft")), "not made by NumPy"),
        (array_of(dtype_of(), shape=(1, 9)), "1 × 9 bytes and brings 8"),
        (array_of(dtype_of(), shape=(-1, -8)), "brings 8"),
        (array_of(dtype_of(), shape=(2**31 - 1, 2**31 - 1)), "brings 8"),
        (array_of(dtype_of()).replace(b"K\0\x85U\1b", b"K\7\x85U\1b"), "makes a call"),
        (b"]q\0h\0a.", "list of other things"),  # a list in itself
        (b"}q\0" + text("a") + b"h\0s.", "dictionary of other things"),
        (b"}" + text("a") + b"]" * 100_000 + b"a" * 99_999 + b"s.", "list of other things"),
        (b")" + b"\x85" * 100_000 + b".", "deeper than a batch"),
        (b"}K\1K\2s.", "dictionary of other things"),
        (b"}" + text("a") + b"K\1K\2e.", "damaged"),
        (b"K\1.", "one dictionary"),
        (b"}}.", "one dictionary"),
        (b"h\1.", "damaged"),
        (b"s.", "more from its stack"),
        (b"}U\5ab", "ends in the middle"),
        (b"T\xff\xff\xff\xffabc.", "ends in the middle"),
        (b"\x8e" + b"\xff" * 8 + b"abc.", "ends in the middle"),
        (b"X\1\0\0\0\xff.", "damaged"),
        (b"N" * 1_000_001 + b".", "more than 1,000,000 instructions"),
        (b"", "ends in the middle"),
    ],
)
def test_everything_else_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        read_plain_pickle(data)


def test_one_text_encoded_over_and_over_takes_no_memory():
    """Two megabytes of text, and a thousand calls that would each make two megabytes of bytes."""
    call = b"h\1h\2U\6latin1\x86R"
    data = b"c_codecs\nencode\nq\1X" + struct.pack("<I", 2_000_000) + b"a" * 2_000_000 + b"q\2" + call * 1000 + b"."
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="makes a call"):
            read_plain_pickle(data)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
