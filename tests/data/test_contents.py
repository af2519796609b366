"""Reading a file once: damaged, empty, too large and wrong files each say what they are."""

from __future__ import annotations

import gzip

import pytest

from torchcaps.data.contents import check_md5, md5_of, read_contents
from torchcaps.errors import DataError


def test_gzip_is_recognised_by_its_bytes_and_not_by_its_name(tmp_path):
    (tmp_path / "plain.gz").write_bytes(b"as it is")
    (tmp_path / "packed").write_bytes(gzip.compress(b"inside"))
    assert read_contents(tmp_path / "plain.gz") == b"as it is"
    assert read_contents(tmp_path / "packed") == b"inside"


@pytest.mark.parametrize("cut", [5, 30, -4])
def test_a_truncated_gzip_file_is_named(tmp_path, cut):
    path = tmp_path / "digits.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 8)[:cut])
    with pytest.raises(DataError, match=r"digits\.gz is a damaged or truncated gzip file"):
        read_contents(path)


def test_damaged_gzip_contents_are_found(tmp_path):
    packed = bytearray(gzip.compress(bytes(1000)))
    packed[-6] ^= 0xFF  # in the checksum that ends the file
    (tmp_path / "digits.gz").write_bytes(packed)
    with pytest.raises(DataError, match="damaged"):
        read_contents(tmp_path / "digits.gz")


@pytest.mark.parametrize("data", [b"", gzip.compress(b"")], ids=["empty", "gzip of nothing"])  # gzip holds the time
def test_nothing_is_not_data(tmp_path, data):
    (tmp_path / "empty").write_bytes(data)
    with pytest.raises(DataError, match=r"empty|holds nothing"):
        read_contents(tmp_path / "empty")


def test_a_file_above_the_limit_is_refused_packed_or_not(tmp_path):
    (tmp_path / "large").write_bytes(bytes(101))
    (tmp_path / "bomb").write_bytes(gzip.compress(bytes(1_000_000)))
    with pytest.raises(DataError, match="larger than the limit"):
        read_contents(tmp_path / "large", max_bytes=100)
    with pytest.raises(DataError, match="larger than the limit"):
        read_contents(tmp_path / "bomb", max_bytes=10_000)


def test_a_missing_file_and_a_folder_are_data_errors(tmp_path):
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(DataError, match="cannot be read"):
            read_contents(path)


def test_a_wrong_checksum_says_both_sums():
    check_md5(b"digits", md5_of(b"digits"), "file")
    with pytest.raises(DataError, match=f"expected MD5 {'0' * 32}.*found {md5_of(b'digits')}"):
        check_md5(b"digits", "0" * 32, "file")
