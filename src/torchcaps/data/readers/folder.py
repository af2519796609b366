"""A folder of one's own pictures: a subfolder a class, or ``train/`` and ``test/`` with subfolders of classes."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

from torchcaps.data.readers.pictures import PICTURE_SUFFIXES, decode_pictures
from torchcaps.data.source import Source, Split, TestSplit, TrainSplit
from torchcaps.data.splits import path_keys, split_off_test
from torchcaps.errors import DataError

__all__ = ["read_picture_folder"]

TEST_SHARE = 0.2
GROUPS_FILE = "groups.csv"


def read_picture_folder(
    folder: Path, *, size: int | tuple[int, int] | None = None, channels: int | None = None, strict: bool = False
) -> Source:
    """Read ``folder/CLASS/*.png`` (also JPEG, TIFF, BMP; deeper folders too) or ``folder/{train,test}/CLASS/*``.

    Without ``test/`` a fifth is held out, stratified by class; a picture's side depends on its path alone, so it stays
    when others are added. ``groups.csv`` in the folder (columns ``path,group``) keeps the pictures of a group together.

    ``size``, ``channels`` and ``strict`` are those of :func:`torchcaps.data.readers.pictures.decode_pictures`.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; 'folder:' wants one with a subfolder for each class")
    divided = (folder / "train").is_dir() and (folder / "test").is_dir()
    pictures = [
        (part, label, path)
        for part in (("train", "test") if divided else ("",))
        for label, path in _pictures_by_class(folder / part)
    ]
    classes = _checked_classes(folder, pictures, divided)
    paths = [path for _, _, path in pictures]
    names = [path.relative_to(folder).as_posix() for path in paths]
    groups = _read_groups(folder, names)
    decoded = decode_pictures(paths, size=size, channels=channels, strict=strict)

    kept = list(decoded.kept)
    examples = Split(
        images=decoded.images,
        labels=torch.tensor([classes.index(pictures[position][1]) for position in kept]),
        groups=None if groups is None else groups[kept],
    )
    _check_counts(folder, examples, classes, decoded.skipped)
    if divided:
        in_train = torch.tensor([pictures[position][0] == "train" for position in kept])
        _check_groups_apart(folder, examples, in_train)
        train = examples.select(torch.nonzero(in_train)[:, 0], TrainSplit)
        test = examples.select(torch.nonzero(~in_train)[:, 0], TestSplit)
        rule = "by the folders train and test"
    else:
        train, test = split_off_test(examples, TEST_SHARE, keys=path_keys([names[position] for position in kept]))
        rule = "a fifth held out by path, stratified by class" + ("" if groups is None else ", whole groups")
    return Source(
        name=f"folder:{folder}",
        train=train,
        test=test,
        classes=classes,
        licence="yours to know",
        origin=str(folder),
        split_rule=rule,
        skipped=decoded.skipped,
    )


def _pictures_by_class(folder: Path) -> Iterator[tuple[str, Path]]:
    for entry in sorted(_listed(folder), key=lambda entry: entry.name):
        if entry.name.startswith(".") or not _is_dir(entry):
            continue
        for path in sorted(_walk(Path(entry.path), (os.path.realpath(folder),))):
            yield entry.name, path


def _walk(folder: Path, above: tuple[str, ...]) -> Iterator[Path]:
    """Every picture below a folder; links are followed, but a link that leads back up is an error."""
    real = os.path.realpath(folder)
    if real in above:
        raise DataError(f"{folder} is a link to a folder that contains it; remove the link")
    for entry in _listed(folder):
        if entry.name.startswith("."):
            continue
        if _is_dir(entry):
            yield from _walk(Path(entry.path), (*above, real))
        elif os.path.splitext(entry.name)[1].lower() in PICTURE_SUFFIXES:
            yield Path(entry.path)


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: {error.strerror or error}") from error


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a link that leads to itself
        raise DataError(f"{entry.path} cannot be followed: {error.strerror or error}; remove it") from error


def _checked_classes(folder: Path, pictures: list[tuple[str, str, Path]], divided: bool) -> tuple[str, ...]:
    found = sorted({label for _, label, _ in pictures})
    if not pictures:
        raise DataError(
            f"{folder} holds no pictures in subfolders; expected {folder.name}/CLASS/*.png (or JPEG, TIFF, BMP), "
            "one subfolder for each class"
        )
    if len(found) < 2:
        raise DataError(
            f"{folder} has one class only, {found[0]!r}; telling classes apart takes at least two subfolders"
        )
    if divided:
        trained = {label for part, label, _ in pictures if part == "train"}
        if untrained := sorted(set(found) - trained):
            raise DataError(f"{folder}/test has classes without pictures in train: {', '.join(untrained)}")
        if not any(part == "test" for part, _, _ in pictures):
            raise DataError(f"{folder}/test holds no pictures; fill it, or remove it to have a fifth held out")
    return tuple(found)


def _check_counts(folder: Path, examples: Split, classes: tuple[str, ...], skipped: tuple[str, ...]) -> None:
    counts = examples.class_counts(len(classes))
    if too_few := [f"{name} ({count})" for name, count in zip(classes, counts, strict=True) if count < 2]:
        after = f" after {len(skipped)} unreadable ones were left out" if skipped else ""
        raise DataError(
            f"{folder}: classes with fewer than two pictures{after}: {', '.join(too_few)}; one is needed to train and "
            "one to test, so add pictures or remove the class"
        )


def _read_groups(folder: Path, names: list[str]) -> torch.Tensor | None:
    path = folder / GROUPS_FILE
    if not path.exists():
        return None
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as CSV ({error})") from error
    if not rows or not {"path", "group"} <= rows[0].keys():
        raise DataError(f"{path} should start with the header path,group and have a line for each picture")
    group_of = {row["path"]: row["group"] for row in rows}
    if missing := [name for name in names if not group_of.get(name)]:
        raise DataError(f"{path} names no group for {len(missing)} of {len(names)} pictures, the first is {missing[0]}")
    numbers = {group: number for number, group in enumerate(Counter(group_of[name] for name in names))}
    return torch.tensor([numbers[group_of[name]] for name in names])


def _check_groups_apart(folder: Path, examples: Split, in_train: torch.Tensor) -> None:
    if examples.groups is None:
        return
    shared = set(examples.groups[in_train].tolist()) & set(examples.groups[~in_train].tolist())
    if shared:
        raise DataError(f"{folder}: {len(shared)} groups of {GROUPS_FILE} stand in train and in test; move them")
