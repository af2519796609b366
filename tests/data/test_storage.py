"""Files appear whole or not at all."""

from __future__ import annotations

import errno

import pytest

from torchcaps.data import storage
from torchcaps.data.storage import DiskError, write_atomically


def test_a_file_is_written_with_its_folders_and_replaced(tmp_path):
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_keeps_the_old_file_and_nothing_else(tmp_path, monkeypatch, code):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(code, "full")

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(DiskError, match="the disk is full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storage.os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DiskError, match="cannot be written"):
        write_atomically(tmp_path / "file" / "inside", b"new")
