"""Take named files out of tar and zip archives, and refuse archives that try to write elsewhere."""

from __future__ import annotations

import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import PurePosixPath, PureWindowsPath

from torchcaps.data.contents import MAX_FILE_BYTES
from torchcaps.errors import DataError

__all__ = ["archive_members"]


def archive_members(
    data: bytes, wanted: Sequence[str], where: str, max_bytes: int = MAX_FILE_BYTES
) -> dict[str, bytes]:
    """Contents of the ``wanted`` files, found by name in whatever folder of the archive.

    Nothing is written, so an archive cannot reach outside; one that tries (``..``, absolute paths) is refused
    all the same, since it is not what was published.
    """
    found: dict[str, bytes] = {}
    with _errors_explained(where):
        for name, size, read in _entries(data):
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive:
                raise DataError(f"{where} has an entry that leads out of its folder ({name!r}); refused")
            if path.name in wanted:
                if size > max_bytes:
                    raise DataError(f"{where}: {name} has {size:,} bytes, more than the limit of {max_bytes:,}")
                found[path.name] = read()
    if missing := [name for name in wanted if name not in found]:
        raise DataError(f"{where} should hold {', '.join(missing)}, but does not")
    return found


def _entries(data: bytes) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """Name, size and reader of every regular file; names of all other entries with nothing to read."""
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for entry in archive.infolist():
                # orig_filename: what the archive says, before Python tidies it
                yield entry.orig_filename, entry.file_size, partial(archive.read, entry)
        return
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:*") as tar:
        for member in tar:
            if member.issym() or member.islnk():
                yield member.linkname, 0, bytes
            yield member.name, member.size, partial(_tar_contents, tar, member)


def _tar_contents(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member) if member.isreg() else None
    if file is None:
        raise DataError(f"{member.name} should be a file, but is a link, a folder or a device")
    return file.read()


@contextmanager
def _errors_explained(where: str) -> Iterator[None]:
    try:
        yield
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        NotImplementedError,
    ) as error:
        raise DataError(f"{where} is not a tar or zip archive, or is damaged ({error}); fetch it again") from error
