"""Read a file once: bounded in size, decompressed, and compared with its published checksum.

Readers work on the very bytes that were checked, so nothing can change between the check and the use.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import zlib
from pathlib import Path

from torchcaps.errors import DataError

__all__ = ["MAX_FILE_BYTES", "check_md5", "check_unpacked_size", "md5_of", "read_contents", "unzipped"]

MAX_FILE_BYTES = 4 * 2**30  # smallNORB, the largest set here, has files of 0.45 GB
GZIP_MAGIC = b"\x1f\x8b"
PIECE = 1 << 20
MAX_RATIO = 100  # of unpacked to packed bytes, where more than MAX_FREE_BYTES are unpacked; pictures pack by 2 to 20
MAX_FREE_BYTES = 64 * 2**20


def read_contents(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of a file, decompressed when they are gzip, whatever the name ends in."""
    return unzipped(read_raw(path, max_bytes), str(path), max_bytes)


def read_raw(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of a file as they are; empty files and files above the limit are refused."""
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise DataError(_too_large(str(path), size, max_bytes))
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    if not data:
        raise DataError(f"{path} is empty (0 bytes); delete it and fetch it again")
    return data


def unzipped(data: bytes, where: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Decompress gzip, never past ``max_bytes``; other bytes come back as they are."""
    if not data.startswith(GZIP_MAGIC):
        return data
    unpacked = io.BytesIO()  # gives its bytes away without a copy
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while piece := stream.read(PIECE):
                check_unpacked_size(unpacked.tell() + len(piece), len(data), where, max_bytes)
                unpacked.write(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{where} is a damaged or truncated gzip file ({error}); delete it and fetch it again"
        ) from error
    if not unpacked.tell():
        raise DataError(f"{where} holds nothing once decompressed; delete it and fetch it again")
    return unpacked.getvalue()


def check_unpacked_size(unpacked: int, packed: int, where: str, max_bytes: int = MAX_FILE_BYTES) -> None:
    """Refuse what would take far more memory than the file on disk, before or while it is unpacked."""
    if unpacked > max_bytes:
        raise DataError(_too_large(where, unpacked, max_bytes))
    if unpacked > max(MAX_FREE_BYTES, MAX_RATIO * packed):
        raise DataError(
            f"{where} has {packed:,} bytes and unpacks to {unpacked:,} or more; more than {MAX_RATIO} times its size "
            "is refused, so save it without compression"
        )


def md5_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def check_md5(data: bytes, expected: str, where: str) -> None:
    found = md5_of(data)
    if found != expected:
        raise DataError(
            f"{where} is not the published file: expected MD5 {expected} of its contents, found {found}; "
            "delete it and fetch it again"
        )


def _too_large(where: str, size: int, max_bytes: int) -> str:
    return f"{where} is larger than the limit: at least {size:,} bytes, {max_bytes:,} are allowed"
