"""Archives: the named files come out, and nothing leads outside."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcaps.data.archive import archive_members
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
