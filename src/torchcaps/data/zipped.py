"""Members of a zip archive, of which neither a name nor a size is believed."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from torchcaps._foreign import shown
from torchcaps.data.contents import MAX_FILE_BYTES, PIECE, check_unpacked_size
from torchcaps.errors import DataError

__all__ = ["ZipMember", "opened_zip"]

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the only ones that zipfile unpacks within bounds
ENCRYPTED = 0x1
MOST_MEMBERS = 10_000


class ZipMember:
    """A file of a zip archive; nothing is unpacked before :meth:`read`."""

    def __init__(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, where: str) -> None:
        self.name = entry.orig_filename  # what the archive says, before Python tidies it
        self.size = entry.file_size
        self._archive, self._entry, self._where = archive, entry, where

    def read(self, first: int | None = None) -> bytearray:
        """The contents, or their ``first`` bytes; the checksum is compared where all of them are read."""
        if self._entry.compress_type not in METHODS or self._entry.flag_bits & ENCRYPTED:
            raise DataError(f"{self._where}: {shown(self.name)} is encrypted, or packed in another way than deflate")
        wanted = self.size if first is None else min(first, self.size)
        contents = bytearray()
        with _errors_explained(self._where), self._archive.open(self._entry) as stream:
            while len(contents) < wanted and (piece := stream.read(min(PIECE, wanted - len(contents)))):
                contents += piece
            complete = first is not None or not stream.read(1)  # this read is what compares the checksum
        if len(contents) < wanted or not complete:
            raise DataError(f"{self._where}: {shown(self.name)} should have {self.size:,} bytes, but has others")
        return contents


@contextmanager
def opened_zip(data: bytes, where: str, max_bytes: int = MAX_FILE_BYTES) -> Iterator[list[ZipMember]]:
    """The members of an archive whose sizes together are within bounds."""
    with _errors_explained(where):
        archive = zipfile.ZipFile(io.BytesIO(data))
    with archive:
        entries = archive.infolist()
        if len(entries) > MOST_MEMBERS:
            raise DataError(f"{where} has {len(entries):,} members; {MOST_MEMBERS:,} are allowed")
        check_unpacked_size(sum(entry.file_size for entry in entries), len(data), where, max_bytes)
        yield [ZipMember(archive, entry, where) for entry in entries]


@contextmanager
def _errors_explained(where: str) -> Iterator[None]:
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        struct.error,
        EOFError,
        OSError,
        NotImplementedError,  # a later version of the format
        OverflowError,
        ValueError,  # also text that is none
    ) as error:
        raise DataError(f"{where} is a damaged zip archive ({error}); fetch or save it again") from error
