"""Put files on the disk so that a reader sees all of one or nothing of it."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torchcaps.errors import DataError

__all__ = ["DiskError", "disk_errors_explained", "finish", "write_atomically"]


class DiskError(DataError):
    """The disk refuses; another way to get the same file would fail as well."""


def write_atomically(destination: Path, data: bytes) -> None:
    """Write beside the destination under a name of its own, then move into place in one step."""
    with disk_errors_explained(destination):
        destination.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=destination.parent, prefix=f".{destination.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)  # temporary files are private, data sets are not
            finish(Path(name), destination)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def finish(written: Path, destination: Path) -> None:
    """Move a complete, synced file to its name, and make the move itself survive a power cut."""
    os.replace(written, destination)
    if os.name == "posix":
        folder = os.open(destination.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def disk_errors_explained(destination: Path) -> Iterator[None]:
    """Say what to do when the disk is full or the folder cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskError(
                f"the disk is full: {destination} could not be written, and nothing of it was kept; free some space "
                "or choose another place with --data-dir or TORCHCAPS_DATA"
            ) from error
        raise DiskError(
            f"{destination} cannot be written: {error.strerror or error}; choose another place with --data-dir"
        ) from error
