"""``load`` a data set by name, or one's own by ``folder:``, ``csv:``, ``npz:`` and ``idx:``."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable
from pathlib import Path

from torchcaps.data.assemble import assemble, centred_digits
from torchcaps.data.catalog import CATALOG
from torchcaps.data.fetch import fetch, fetch_folder
from torchcaps.data.info import SourceInfo
from torchcaps.data.locate import Located, Verified, cache_folder, locate, missing_files, read_verified, users_folder
from torchcaps.data.readers.folder import read_picture_folder
from torchcaps.data.readers.idx import read_idx_folder
from torchcaps.data.readers.npz import read_npz_file
from torchcaps.data.readers.table import read_picture_table
from torchcaps.data.sample import SAMPLES, sample_source
from torchcaps.data.source import Source
from torchcaps.errors import DataError

__all__ = ["SampleDataWarning", "find_source", "load", "source_info"]

FolderName = str | os.PathLike[str] | None
ImageSize = int | tuple[int, int] | None
FILE_READERS: dict[str, Callable[[Path], Source]] = {"idx": read_idx_folder, "npz": read_npz_file}
PICTURE_READERS: dict[str, Callable[..., Source]] = {"folder": read_picture_folder, "csv": read_picture_table}


class SampleDataWarning(UserWarning):
    """MNIST was asked for, and its small embedded sample was given."""


def source_info(name: str) -> SourceInfo:
    """The entry of one data set; an unknown name is an error that names the nearest one."""
    if name in CATALOG:
        return CATALOG[name]
    if ":" in name and name.partition(":")[0] in (*FILE_READERS, *PICTURE_READERS):
        raise DataError(f"{name} is data of your own, which has no known checksums; read it with: torchcaps data info")
    near = _nearest(name)
    hint = f"; did you mean {near!r}?" if near else "."
    raise DataError(
        f"no data set is named {name!r}{hint} Known: {', '.join(CATALOG)}; "
        "or your own with folder:PATH, csv:FILE, npz:FILE, idx:FOLDER"
    )


def _nearest(name: str) -> str | None:
    """What was probably meant: a path without its kind in front, or a name much like this one."""
    kind = Path(name).suffix[1:]
    if name and Path(name).is_dir():
        return f"folder:{name}"
    if kind in ("csv", "npz") and Path(name).is_file():
        return f"{kind}:{name}"
    names = [*CATALOG, *(f"{kind}:" for kind in (*FILE_READERS, *PICTURE_READERS))]
    return next(iter(difflib.get_close_matches(name.lower(), names, n=1)), None)


def load(
    name: str,
    *,
    data_dir: FolderName = None,
    download: bool = True,
    size: ImageSize = None,
    channels: int | None = None,
    strict: bool = False,
) -> Source:
    """Read a data set as checked uint8 tensors.

    A named set is looked for in ``data_dir`` (or the folder in ``TORCHCAPS_DATA``), then in the user's cache, and
    fetched if it is in neither. MNIST alone has a last resort, its embedded sample; then ``is_sample`` is set and a
    :class:`SampleDataWarning` given.

    Args:
        name: one of :func:`list_sources`, or ``folder:PATH``, ``csv:FILE``, ``npz:FILE``, ``idx:FOLDER``.
        data_dir: folder to look in first, and to fetch to.
        download: whether to go to the network for what is not here.
        size, channels, strict: how to read one's own pictures; see
            :func:`torchcaps.data.readers.pictures.decode_pictures`.

    Example:
        >>> digits = load("mnist-sample")
        >>> digits.image_shape, digits.num_classes, len(digits.train), len(digits.test)
        ((1, 28, 28), 10, 1000, 500)
    """
    scheme, colon, rest = name.partition(":")
    if colon and scheme in PICTURE_READERS:
        return PICTURE_READERS[scheme](_own_path(scheme, rest), size=size, channels=channels, strict=strict)
    if not (colon and scheme in FILE_READERS):
        source_info(name)  # an unknown name is more to the point than a size that it cannot have
    if size is not None or channels is not None or strict:
        raise DataError(f"size, channels and strict are for folder: and csv:; {name} has a fixed form")
    if colon and scheme in FILE_READERS:
        return FILE_READERS[scheme](_own_path(scheme, rest))
    info = source_info(name)
    if not info.file_sets:
        return sample_source(info)
    try:
        located, verified = find_source(info, data_dir, download=download)
    except DataError as error:
        if name != "mnist" or not isinstance(error, NotHereError):
            raise
        warnings.warn(
            f"THIS IS NOT MNIST but a sample of 1,500 of its digits, too few for any published figure. {error}",
            SampleDataWarning,
            stacklevel=2,
        )
        return sample_source(source_info(SAMPLES[name]))
    return _source(info, located, verified, data_dir, download)


class NotHereError(DataError):
    """The data set is not on this machine and could not be brought here."""


def find_source(info: SourceInfo, data_dir: FolderName = None, *, download: bool = True) -> tuple[Located, Verified]:
    """The files of a set, read and compared with their checksums, fetched first if need be."""
    located = locate(info, data_dir)
    if located is not None:
        named = users_folder(data_dir)
        mine = named is not None and named in located.paths[0].parents
        try:
            return located, read_verified(located)
        except DataError:
            if mine or not download:  # the user's own file: not for us to replace
                raise
    if not download:
        raise NotHereError(_not_here(info, data_dir))
    try:
        located = fetch(info, fetch_folder(data_dir))
    except DataError as error:
        raise NotHereError("\n".join([str(error), *_partial_remarks(info, data_dir)])) from error
    return located, read_verified(located)


def _source(info: SourceInfo, located: Located, verified: Verified, data_dir: FolderName, download: bool) -> Source:
    train, validation, test = assemble(info, verified.contents)
    is_sample = False
    if info.name == "affnist":
        digits = load("mnist", data_dir=data_dir, download=download)
        train, is_sample = centred_digits(digits.train), digits.is_sample
    return Source(
        name=info.name,
        train=train,
        validation=validation,
        test=test,
        classes=info.classes,
        licence=info.licence,
        origin="; ".join([f"{info.origin}; read from {located.paths[0].parent}", *verified.remarks]),
        split_rule=info.split_rule,
        is_sample=is_sample,
    )


def _own_path(scheme: str, rest: str) -> Path:
    if not rest:
        raise DataError(f"{scheme}: wants a path behind the colon, for example {scheme}:my/data")
    return Path(rest).expanduser()


def _not_here(info: SourceInfo, data_dir: FolderName) -> str:
    places = [str(root) for root in (users_folder(data_dir), cache_folder()) if root is not None]
    lines = [f"{info.name} is not on this machine (looked in {', '.join(places)}). To get it: {info.how_to_get}."]
    return "\n".join(lines + _partial_remarks(info, data_dir))


def _partial_remarks(info: SourceInfo, data_dir: FolderName) -> list[str]:
    roots = [root for root in (users_folder(data_dir), cache_folder()) if root is not None]
    return [line for root in roots for line in missing_files(info, root)]
