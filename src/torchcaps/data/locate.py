"""Find a data set on this machine, and read it with its checksums compared."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from torchcaps.data.contents import MAX_FILE_BYTES, check_md5, md5_of, read_raw, unzipped
from torchcaps.data.info import FileSet, PublishedFile, SourceInfo
from torchcaps.errors import DataError

__all__ = [
    "DATA_VARIABLE",
    "Located",
    "Verified",
    "cache_folder",
    "existing",
    "find",
    "locate",
    "missing_files",
    "read_verified",
    "users_folder",
]

DATA_VARIABLE = "TORCHCAPS_DATA"


@dataclass(frozen=True)
class Located:
    """Files of one complete set, in the order of ``file_set.files``."""

    file_set: FileSet
    paths: tuple[Path, ...]


@dataclass(frozen=True)
class Verified:
    """Contents by name in the catalogue, the names whose checksum was compared, and remarks on unofficial copies."""

    contents: Mapping[str, bytes]
    checked: frozenset[str]
    remarks: tuple[str, ...]


def users_folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The folder that the user names, in the call or in the environment."""
    named = data_dir if data_dir is not None else os.environ.get(DATA_VARIABLE)
    if not named:
        return None
    folder = Path(named).expanduser()
    if data_dir is not None and folder.exists() and not folder.is_dir():
        raise DataError(f"the data folder {folder} is a file")
    return folder


def cache_folder() -> Path:
    """Where each system keeps what can be fetched again."""
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        return root / "torchcaps" / "Cache" / "data"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "torchcaps" / "data"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "torchcaps" / "data"


def find(info: SourceInfo, root: Path) -> Located | None:
    """A complete set below ``root``: in one of the folders that bear its name, or in ``root`` itself.

    Many sets share their file names. In ``root`` itself, where no folder says which set is meant, files count only
    when their checksums are right; in a folder with the set's name, wrong ones are left for :func:`read_verified` to
    complain about.
    """
    for file_set in info.file_sets:
        for folder in (root / name for name in file_set.folders):
            if located := _complete(file_set, folder):
                return located
        located = _complete(file_set, root)
        if located and all(file.md5 for file in file_set.files) and is_genuine(located):
            return located
    return None


def locate(info: SourceInfo, data_dir: str | os.PathLike[str] | None = None) -> Located | None:
    """Where the files of a set lie on this machine: the user's folder first, then the cache."""
    for root in (users_folder(data_dir), cache_folder()):
        if root is not None and (located := find(info, root)):
            return located
    return None


def missing_files(info: SourceInfo, root: Path) -> list[str]:
    """A line for each folder that holds some files of the set, but not all."""
    lines = []
    for file_set in info.file_sets:
        for folder in (root / name for name in file_set.folders):
            absent = [file.name for file in file_set.files if existing(file, folder) is None]
            if 0 < len(absent) < len(file_set.files):
                lines.append(f"{folder} lacks {', '.join(absent)}")
    return lines


def read_verified(located: Located) -> Verified:
    """Read each file once and compare the checksum of its contents."""
    contents: dict[str, bytes] = {}
    checked: set[str] = set()
    remarks: list[str] = []
    for file, path in zip(located.file_set.files, located.paths, strict=True):
        raw = read_raw(path)
        contents[file.name] = unzipped(raw, str(path), MAX_FILE_BYTES)
        remarks.extend(_check(file, path, raw, contents[file.name]))
        if file.md5 or (file.packed_md5 and raw is not contents[file.name]):
            checked.add(file.name)
    return Verified(contents, frozenset(checked), tuple(remarks))


def _check(file: PublishedFile, path: Path, raw: bytes, contents: bytes) -> Iterator[str]:
    if file.packed_md5 and raw is not contents:
        check_md5(raw, file.packed_md5, str(path))
    if file.md5 is None:
        return
    other = dict(file.other_md5).get(md5_of(contents)) if file.other_md5 else None
    if other is None:
        check_md5(contents, file.md5, str(path))
    else:
        yield f"{path.name}: {other}"


def is_genuine(located: Located) -> bool:
    """Whether every file can be read and has the published checksum."""
    try:
        read_verified(located)
    except DataError:
        return False
    return True


def _complete(file_set: FileSet, folder: Path) -> Located | None:
    paths = [existing(file, folder) for file in file_set.files]
    found = tuple(path for path in paths if path is not None)
    return Located(file_set, found) if len(found) == len(paths) else None


def existing(file: PublishedFile, folder: Path) -> Path | None:
    """The file in the folder under one of its names, packed or not."""
    for name in (file.name, *file.also_named):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    return None
