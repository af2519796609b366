"""A folder of one's own pictures: a subfolder a class, or ``train/``, ``val/``, ``test/`` that hold them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import torch

from torchcaps.data.readers.pictures import PICTURE_KINDS, PICTURE_SUFFIXES, decode_pictures
from torchcaps.data.readers.table import printable, read_csv
from torchcaps.data.repeats import find_repeats
from torchcaps.data.source import Source, Split, TestSplit, TrainSplit, ValidationSplit
from torchcaps.data.splits import path_keys, split_off_test
from torchcaps.errors import DataError

__all__ = ["read_picture_folder"]

TEST_SHARE = 0.2
GROUPS_FILE = "groups.csv"
PARTS = {"train": "train", "val": "validation", "valid": "validation", "validation": "validation", "test": "test"}


def read_picture_folder(
    folder: Path, *, size: int | tuple[int, int] | None = None, channels: int | None = None, strict: bool = False
) -> Source:
    """Read ``folder/CLASS/*`` or ``folder/{train,val,test}/CLASS/*``, pictures in deeper folders too.

    When the folder is not divided so, a fifth is held out, stratified by class, in an order that depends on the paths
    alone: the same on every machine, and nearly the same when pictures are added. ``groups.csv`` in the folder (columns
    ``path,group``) keeps the pictures of a group on one side.

    ``skipped`` of the source also names the files of other kinds, and the folders that hold no picture and so are no
    class; ``strict`` makes the latter an error.

    ``size``, ``channels`` and ``strict`` are those of :func:`torchcaps.data.readers.pictures.decode_pictures`.
    """
    if not folder.is_dir():
        what = f"{folder} is a file" if folder.exists() else f"there is no folder {folder}"
        raise DataError(f"{what}; folder:PATH wants a folder with a subfolder for each class")
    parts = _parts(folder)
    divided = "train" in map(str.lower, parts) and len(parts) > 1
    found = [
        (PARTS.get(part.lower(), ""), home, files)
        for part in (parts if divided else ["."])
        for home, files in _files_by_class(folder / part)
    ]
    pictures = [(part, home.name, path) for part, home, files in found for path in files if _is_picture(path)]
    classless = _without_pictures([home for _, home, _ in found], {label for _, label, _ in pictures})
    if strict and classless:
        raise DataError(f"{len(classless)} folders cannot be read as classes:\n  " + "\n  ".join(classless))
    classes = _checked_classes(folder, pictures, divided, classless)
    paths = [path for _, _, path in pictures]
    names = [path.relative_to(folder).as_posix() for path in paths]
    groups = _read_groups(folder, names)
    decoded = decode_pictures(paths, size=size, channels=channels, strict=strict)

    kept = list(decoded.kept)
    examples = Split(
        images=decoded.images,
        labels=torch.tensor([classes.index(pictures[position][1]) for position in kept]),
        groups=None if groups is None else groups[kept],
        files=tuple(printable(names[position]) for position in kept),
    )
    validation: ValidationSplit | None = None
    if divided:
        part_of = [pictures[position][0] for position in kept]
        _check_groups_apart(folder, examples, part_of)
        train = examples.select(_positions(part_of, "train"), TrainSplit)
        validation = examples.select(_positions(part_of, "validation"), ValidationSplit)
        test = examples.select(_positions(part_of, "test"), TestSplit)
        if unread := [name for name, count in zip(classes, train.class_counts(len(classes)), strict=True) if not count]:
            raise DataError(f"{folder} has classes without readable pictures in train: {', '.join(unread)}")
        rule = "by the folders train, val and test"
    else:
        _check_counts(folder, examples, classes, decoded.skipped)
        train, test = split_off_test(examples, TEST_SHARE, keys=path_keys([names[position] for position in kept]))
        rule = "a fifth held out by path, stratified by class" + ("" if groups is None else ", whole groups")
    splits: dict[str, Split] = {"train": train, "test": test}
    if validation is not None:
        splits["validation"] = validation
    return Source(
        name=f"folder:{folder}",
        train=train,
        validation=validation if validation is not None and len(validation) else None,
        test=test if len(test) else None,
        classes=classes,
        licence="yours to know",
        origin=str(folder),
        split_rule=rule,
        skipped=(
            *decoded.skipped,
            *_of_other_kinds(path for _, _, files in found for path in files),
            *classless,
            *_outside(folder, parts if divided else []),
        ),
        repeats=find_repeats(splits),
    )


def _parts(folder: Path) -> list[str]:
    """Subfolders named as in :data:`PARTS`; Train is train, as it is on disks that do not tell capitals apart."""
    names = sorted(entry.name for entry in _listed(folder) if entry.name.lower() in PARTS and _is_dir(entry))
    return sorted(names, key=lambda name: list(PARTS).index(name.lower()))


def _files_by_class(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    """Each subfolder, and every file in it."""
    for entry in sorted(_listed(folder), key=lambda entry: entry.name):
        if entry.name.startswith(".") or not _is_dir(entry):
            continue
        yield Path(entry.path), sorted(_walk(Path(entry.path), (os.path.realpath(folder),)))


def _walk(folder: Path, above: tuple[str, ...]) -> Iterator[Path]:
    """Every file below a folder; links are followed, but a link that leads back up is an error."""
    real = os.path.realpath(folder)
    if real in above:
        raise DataError(f"{folder} is a link to a folder that contains it; remove the link")
    for entry in _listed(folder):
        if entry.name.startswith("."):
            continue
        if _is_dir(entry):
            yield from _walk(Path(entry.path), (*above, real))
        else:
            yield Path(entry.path)


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in PICTURE_SUFFIXES


def _of_other_kinds(paths: Iterable[Path]) -> list[str]:
    return [f"{path}: not a kind that is read ({PICTURE_KINDS})" for path in paths if not _is_picture(path)]


def _outside(folder: Path, parts: list[str]) -> Iterator[str]:
    """A line for each picture that is in no class, and for each folder beside train, val and test."""
    for place in (folder, *(folder / part for part in parts)):
        for entry in sorted(_listed(place), key=lambda entry: entry.name):
            if entry.name.startswith("."):
                continue
            if not _is_dir(entry) and _is_picture(Path(entry.path)):
                yield f"{entry.path}: in the folder of no class"
            elif parts and place == folder and _is_dir(entry) and entry.name not in parts:
                yield f"{entry.path}: beside {', '.join(parts)}"


def _without_pictures(homes: list[Path], classes: set[str]) -> list[str]:
    return [f"{home}: no class, for it holds no picture" for home in homes if home.name not in classes]


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


def _checked_classes(
    folder: Path, pictures: list[tuple[str, str, Path]], divided: bool, classless: list[str]
) -> tuple[str, ...]:
    found = sorted({label for _, label, _ in pictures})
    detail = "\n  " + "\n  ".join(classless[:5]) if classless else ""
    if not pictures:
        raise DataError(
            f"{folder} holds no pictures in subfolders; expected {folder.name}/CLASS/*.png ({PICTURE_KINDS} are "
            f"read), one subfolder for each class{detail}"
        )
    if len(found) < 2:
        raise DataError(
            f"{folder} has one class only, {found[0]!r}; telling classes apart takes at least two subfolders{detail}"
        )
    if divided:
        trained = {label for part, label, _ in pictures if part == "train"}
        if untrained := sorted(set(found) - trained):
            raise DataError(f"{folder} has classes without pictures in train: {', '.join(untrained)}")
        if not any(part != "train" for part, _, _ in pictures):
            raise DataError(f"{folder} has pictures in train only; fill test, or move the classes up one folder")
    return tuple(found)


def _check_counts(folder: Path, examples: Split, classes: tuple[str, ...], skipped: tuple[str, ...]) -> None:
    counts = examples.class_counts(len(classes))
    if too_few := [f"{name} ({count})" for name, count in zip(classes, counts, strict=True) if count < 2]:
        after = f" after {len(skipped)} unreadable ones were left out" if skipped else ""
        raise DataError(
            f"{folder}: classes with fewer than two pictures{after}: {', '.join(too_few)}; a class needs one to "
            "learn from and one to test on, so add pictures or remove it"
        )


def _read_groups(folder: Path, names: list[str]) -> torch.Tensor | None:
    path = folder / GROUPS_FILE
    if not path.exists():
        return None
    rows, header = read_csv(path)
    if not rows or not {"path", "group"} <= set(header):
        raise DataError(f"{path} should start with the header path,group and have a line for each picture")
    group_of: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, row in enumerate(rows, start=2):
        name = PurePosixPath(row["path"] or "").as_posix()  # ./cat/1.png is cat/1.png
        if (first := lines.setdefault(name, number)) != number:
            raise DataError(f"{path}, line {number}: {name} is listed in line {first} already; list it once")
        if not os.path.isfile(folder / name):
            raise DataError(
                f"{path}, line {number}: there is no file {name!r} in {folder}; write the path from there on, or "
                "remove the line"
            )
        group_of[name] = (row["group"] or "").strip()
    if missing := [name for name in names if not group_of.get(name)]:
        raise DataError(f"{path} names no group for {len(missing)} of {len(names)} pictures, the first is {missing[0]}")
    numbers = {group: number for number, group in enumerate(Counter(group_of[name] for name in names))}
    return torch.tensor([numbers[group_of[name]] for name in names])


def _check_groups_apart(folder: Path, examples: Split, part_of: list[str]) -> None:
    if examples.groups is None:
        return
    seen: dict[int, str] = {}
    for group, part in zip(examples.groups.tolist(), part_of, strict=True):
        if seen.setdefault(group, part) != part:
            raise DataError(
                f"{folder}: a group of {GROUPS_FILE} has pictures in {seen[group]} and in {part}; move them"
            )


def _positions(part_of: list[str], wanted: str) -> torch.Tensor:
    return torch.tensor([position for position, part in enumerate(part_of) if part == wanted], dtype=torch.int64)
