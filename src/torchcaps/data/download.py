"""Download one file over HTTP: resumed where it broke off, checked, and in place only when complete.

What has arrived stands in ``NAME.part`` beside the destination. It stays there when the line breaks, so that the next
attempt asks for the rest only, and goes away when the checksum is wrong or the disk is full.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from torchcaps.data.contents import MAX_FILE_BYTES
from torchcaps.data.progress import byte_progress
from torchcaps.data.storage import DiskError, disk_errors_explained, finish
from torchcaps.errors import DataError

__all__ = ["UnreachableError", "download"]

CHUNK = 1 << 20
ATTEMPTS = 3
TIMEOUT_SECONDS = 10.0
USER_AGENT = "torchcaps"
LENGTH = re.compile(r"[0-9]{1,18}")  # of a file, as a server announces it


class UnreachableError(DataError):
    """The host did not answer at all, so asking it for another file is a waste of time."""


class _InterruptedError(Exception):
    """The line broke after some bytes; the rest can be asked for."""


def download(
    url: str,
    destination: Path,
    *,
    md5: str | None = None,
    max_bytes: int = MAX_FILE_BYTES,
    timeout: float = TIMEOUT_SECONDS,
) -> None:
    """Fetch ``url`` to ``destination``; without an ``md5`` to check the joined file by, nothing is resumed."""
    part = destination.with_name(destination.name + ".part")
    with disk_errors_explained(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        if md5 is None:
            part.unlink(missing_ok=True)
    trouble = ""
    for _ in range(ATTEMPTS):
        resumed = part.exists()
        try:
            _append(url, part, max_bytes, timeout)
        except _InterruptedError as error:
            trouble = str(error)
            continue
        if md5 is None or _md5_of_file(part) == md5:
            with disk_errors_explained(destination):
                finish(part, destination)
            return
        part.unlink()
        trouble = f"the checksum is wrong (expected MD5 {md5})"
        if not resumed:  # two joined halves may not fit; one whole file with the wrong sum is simply wrong
            break
    raise DataError(f"{url}: {trouble}" + ("; run it again to go on from there" if part.exists() else ""))


def _append(url: str, part: Path, max_bytes: int, timeout: float) -> None:
    """Ask for what is missing of ``part`` and add it."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": USER_AGENT})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # everything is here already; the checksum decides whether it is right
        raise DataError(f"{url}: the server answered {error.code} {error.reason}") from error
    except (urllib.error.URLError, OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UnreachableError(f"{url}: not reachable ({reason})") from error
    with response:
        continued = response.status == http.HTTPStatus.PARTIAL_CONTENT
        length = response.headers.get("Content-Length")
        start = have if continued else 0
        total = start + int(length) if length and LENGTH.fullmatch(length) else None
        if (total or 0) > max_bytes:
            part.unlink(missing_ok=True)
            raise DataError(f"{url} announces {total:,} bytes, more than the limit of {max_bytes:,}")
        with byte_progress(part.name.removesuffix(".part"), total, start) as advance:
            received = start + _copy(response, part, "ab" if continued else "wb", max_bytes - start, advance)
    if received > max_bytes:
        part.unlink()
        raise DataError(f"{url} is larger than the limit of {max_bytes:,} bytes")
    if total is not None and received < total:
        raise _InterruptedError(f"the connection broke after {received:,} of {total:,} bytes")


def _copy(
    response: http.client.HTTPResponse, part: Path, mode: str, max_bytes: int, advance: Callable[[int], None]
) -> int:
    """Write what comes, and sync it; one chunk above the limit at most. Returns the number of bytes."""
    received = 0
    try:
        with disk_errors_explained(part), part.open(mode) as file:
            while received <= max_bytes and (chunk := _next_chunk(response)):
                file.write(chunk)
                received += len(chunk)
                advance(len(chunk))
            file.flush()
            os.fsync(file.fileno())
    except DiskError:  # the disk refused: half a file there helps nobody
        part.unlink(missing_ok=True)
        raise
    return received


def _next_chunk(response: http.client.HTTPResponse) -> bytes:
    try:
        return response.read(CHUNK)
    except http.client.IncompleteRead as error:
        return error.partial
    except (OSError, http.client.HTTPException) as error:
        raise _InterruptedError(f"the connection broke ({error})") from error


def _md5_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
