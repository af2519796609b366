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

__all__ = ["MAX_FILE_BYTES", "check_md5", "md5_of", "read_contents", "unzipped"]

MAX_FILE_BYTES = 4 * 2**30  # smallNORB, the largest set here, has files of 0.45 GB
GZIP_MAGIC = b"\x1f\x8b"


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
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            contents = stream.read(max_bytes + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{where} is a damaged or truncated gzip file ({error}); delete it and fetch it again"
        ) from error
    if len(contents) > max_bytes:
        raise DataError(_too_large(where, len(contents), max_bytes))
    if not contents:
        raise DataError(f"{where} holds nothing once decompressed; delete it and fetch it again")
    return contents


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
