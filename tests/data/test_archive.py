"""Archives: the named files come out, and nothing leads outside."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcaps.data.archive import archive_members
from torchcaps.data.tarred import tar_members
from torchcaps.errors import DataError


def tar_of(entries: dict[str, bytes], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, data in entries.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def zip_of(entries: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_files_are_found_in_whatever_folder(pack):
    data = pack({"package/data/a": b"A", "package/b": b"B", "package/readme": b"?"})
    assert archive_members(data, ("a", "b"), "toy") == {"a": b"A", "b": b"B"}


@pytest.mark.parametrize("pack", [tar_of, zip_of])
@pytest.mark.parametrize("name", ["../a", "x/../../a", "/etc/a", "C:\\a", "..\\a"])
def test_an_archive_that_leads_outside_is_refused(pack, name):
    with pytest.raises(DataError, match="leads out of its folder"):
        archive_members(pack({"b": b"B", name: b"A"}), ("b",), "toy")


def test_links_out_of_the_folder_are_refused():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        link = tarfile.TarInfo("data/a")
        link.type, link.linkname = tarfile.SYMTYPE, "../../etc/passwd"
        archive.addfile(link)
    with pytest.raises(DataError, match="leads out"):
        archive_members(buffer.getvalue(), ("a",), "toy")


def test_a_folder_in_place_of_a_file_is_refused():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        folder = tarfile.TarInfo("data/a")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    with pytest.raises(DataError, match="should be a file"):
        archive_members(buffer.getvalue(), ("a",), "toy")


@pytest.mark.parametrize("pack", [tar_of, zip_of])
def test_missing_damaged_and_large_archives_are_named(pack):
    data = pack({"a": bytes(range(256)) * 40})
    with pytest.raises(DataError, match="toy should hold b"):
        archive_members(data, ("a", "b"), "toy")
    with pytest.raises(DataError, match="limit of 100"):
        archive_members(data, ("a",), "toy", max_bytes=100)
    with pytest.raises(DataError, match="toy"):
        archive_members(data[: len(data) // 2], ("a",), "toy")


@given(st.binary(max_size=600))
def test_random_bytes_raise_our_error(data):
    with pytest.raises(DataError):
        archive_members(data, ("a",), "toy")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("depth", [0, 80, 250])
def test_names_of_every_length_are_those_of_tarfile(form, depth):
    if form == tarfile.USTAR_FORMAT and depth > 155:
        pytest.skip("ustar has no names of that length")
    names = [f"{'d' * depth}/file-{number}".lstrip("/") for number in range(3)] + ["é/a"]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for number, name in enumerate(names):
            member = tarfile.TarInfo(name)
            member.size = 511 + number
            archive.addfile(member, io.BytesIO(bytes([number]) * 600))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, f"{'l' * depth}x"
        archive.addfile(link)
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
    with tarfile.open(fileobj=io.BytesIO(buffer.getvalue())) as archive:
        expected = [(entry.name, entry.linkname, archive.extractfile(entry)) for entry in archive if entry.isreg()]
        expected = [(name, link, file.read()) for name, link, file in expected]
    found = list(tar_members(buffer.getvalue(), "toy"))
    assert [(entry.name, entry.link, bytes(entry.contents)) for entry in found[:4]] == expected
    assert [(entry.name, entry.link, entry.contents) for entry in found[4:]] == [
        ("link", f"{'l' * depth}x", None),
        ("folder/", "", None),
    ]


def header(name: bytes = b"a", size: bytes = b"00000000001\0", kind: bytes = b"0") -> bytes:
    """A tar header with a right checksum, whatever it says."""
    fields = name.ljust(100, b"\0") + bytes(24) + size.ljust(12, b"\0") + bytes(12) + b" " * 8 + kind
    fields = fields.ljust(257, b"\0") + b"ustar\0" + b"00"
    total = b"%06o\0 " % sum(fields)
    return (fields[:148] + total + fields[156:]).ljust(512, b"\0")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (header(size=b"-0000001000"), "header in it is damaged"),  # tarfile steps back, for ever
        (header(size=b"\xff" * 12), "header in it is damaged"),
        (header(size=b"77777777777"), "ends inside a member of 8,589,934,591 bytes"),
        (header(size=b"none") + bytes(512), "header in it is damaged"),
        (header()[:100] + b"9" + header()[101:] + bytes(512), "header in it is damaged"),
        (header(kind=b"S") + bytes(512), "a should be a file"),  # a sparse file, of any size
        (header(kind=b"3") + bytes(512), "a should be a file"),
        ((header(b"././@LongLink", b"1", b"L") + b"b".ljust(512, b"\0")) * 5000, "should hold a"),
        ((header(b"pax", b"1", b"x") + b"b".ljust(512, b"\0")) * 5000, "should hold a"),
        (header(b"pax", b"24", b"x") + b"20 path=/etc/passwd\n".ljust(512, b"\0") + header() + bytes(512), "leads out"),
        (header(b"..\xff/a") + bytes(512), None),
        (bytes(10_240), "should hold a"),
        (b"", "not a zip, tar or"),
        (gzip.compress(b"no archive", mtime=0), "not a zip, tar or"),
        (lzma.compress(bytes(1 << 20)), "not a zip, tar or"),
        (bz2.compress(bytes(1 << 20)), "not a zip, tar or"),
        (gzip.compress(bytes(80 << 20), 1, mtime=0), "more than 100 times its size"),
    ],
)
def test_hostile_tar_archives_are_refused(data, message):
    if message is None:
        assert archive_members(data, ("a",), "toy") == {"a": b"\0"}
        return
    with pytest.raises(DataError, match=message):
        archive_members(data, ("a",), "toy")


def hostile_zip(name: str = "a", contents: bytes = b"A" * 1000, method: int = zipfile.ZIP_DEFLATED) -> bytearray:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(zipfile.ZipInfo(name), contents, method)
    return bytearray(buffer.getvalue())


def with_number(data: bytearray, place: int, number: int, width: int = 4) -> bytes:
    """``data`` with a number in the directory of a zip archive changed."""
    first = data.index(b"PK\1\2") + place
    data[first : first + width] = number.to_bytes(width, "little")
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (with_number(hostile_zip(), 24, 10), "damaged"),  # more comes than is announced
        (with_number(hostile_zip(), 24, 2000), "damaged|should have 2,000 bytes"),
        (with_number(hostile_zip(), 24, 2**32 - 2), "more than 100 times its size"),
        (with_number(hostile_zip(), 24, 2**31), "more than 100 times its size"),
        (with_number(hostile_zip(), 42, 2**31), "damaged"),
        (with_number(hostile_zip(), 8, 1, 2), "encrypted"),
        (with_number(hostile_zip(), 6, 99, 2), "damaged"),
        (bytes(hostile_zip(method=zipfile.ZIP_BZIP2)), "another way than deflate"),
        (bytes(hostile_zip(method=zipfile.ZIP_LZMA)), "another way than deflate"),
        (bytes(hostile_zip(contents=bytes(80 << 20))), "more than 100 times its size"),
        (b"PK\5\6" + bytes(18), "should hold a"),
        (b"PK", "damaged"),
    ],
)
def test_hostile_zip_archives_are_refused(data, message):
    with pytest.raises(DataError, match=message):
        archive_members(data, ("a",), "toy")
