"""Take named files out of tar and zip archives, and refuse archives that try to write elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import PurePosixPath, PureWindowsPath

from torchcaps._foreign import shown
from torchcaps.data.contents import MAX_FILE_BYTES, unzipped
from torchcaps.data.tarred import TarMember, tar_members
from torchcaps.data.zipped import ZipMember, opened_zip
from torchcaps.errors import DataError

__all__ = ["archive_members"]

ZIP_MAGIC = b"PK"


def archive_members(
    data: bytes, wanted: Sequence[str], where: str, max_bytes: int = MAX_FILE_BYTES
) -> dict[str, bytes]:
    """Contents of the ``wanted`` files of a zip, tar or tar.gz archive, found by name in whatever folder of it.

    Nothing is written, so an archive cannot reach outside; one that tries (``..``, absolute paths) is refused
    all the same, since it is not what was published.
    """
    found: dict[str, bytes] = {}
    for name, size, read in _entries(data, where):
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or PureWindowsPath(name).drive:
            raise DataError(f"{where} has an entry that leads out of its folder ({shown(name)}); refused")
        if path.name in wanted:
            if size > max_bytes:
                raise DataError(f"{where}: {name} has {size:,} bytes, more than the limit of {max_bytes:,}")
            found[path.name] = read()
    if missing := [name for name in wanted if name not in found]:
        raise DataError(f"{where} should hold {', '.join(missing)}, but does not")
    return found


def _entries(data: bytes, where: str) -> Iterator[tuple[str, int, Callable[[], bytes]]]:
    """Name, size and reader of every file; where links lead, with nothing to read."""
    if data.startswith(ZIP_MAGIC):
        with opened_zip(data, where) as members:
            for member in members:
                yield member.name, member.size, partial(_zip_contents, member)
        return
    for entry in tar_members(unzipped(data, where), where):
        if entry.link:
            yield entry.link, 0, bytes
        yield entry.name, len(entry.contents or b""), partial(_tar_contents, entry, where)


def _zip_contents(member: ZipMember) -> bytes:
    return bytes(member.read())


def _tar_contents(member: TarMember, where: str) -> bytes:
    if member.contents is None:
        raise DataError(f"{where}: {member.name} should be a file, but is a link, a folder or a device")
    return bytes(member.contents)
