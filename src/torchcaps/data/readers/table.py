"""A CSV file that lists pictures and what they show, one class a picture or several.

Columns: ``path`` (from the folder of the CSV file on) and one of
``label`` (one class a picture), ``labels`` (several, with ``;`` between them), or a column a class with 0 and 1.
Further columns may be ``group`` (stays on one side of every split) and ``split`` (``train`` or ``test``).
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import torch

from torchcaps.data.readers.pictures import decode_pictures
from torchcaps.data.repeats import find_repeats
from torchcaps.data.source import Source, Split, TestSplit, TrainSplit
from torchcaps.data.splits import path_keys, split_off_test
from torchcaps.errors import DataError

__all__ = ["printable", "read_csv", "read_picture_table"]

RESERVED = ("path", "label", "labels", "group", "split")
MOST_CELLS = 2**27  # of the table of pictures by classes
Rows = list[dict[str, str]]


def read_picture_table(
    path: Path, *, size: int | tuple[int, int] | None = None, channels: int | None = None, strict: bool = False
) -> Source:
    """Read the pictures that a CSV file lists; the module's docstring states its columns."""
    rows = _read_rows(path)
    classes, labels = _read_labels(path, rows)
    decoded = decode_pictures([path.parent / row["path"] for row in rows], size=size, channels=channels, strict=strict)
    kept = list(decoded.kept)
    kept_rows = [rows[position] for position in kept]
    files = tuple(printable(row["path"]) for row in kept_rows)
    examples = Split(decoded.images, labels[kept], _read_groups(path, kept_rows), files=files)
    train, test = _divided(path, examples, kept_rows)
    counts = train.class_counts(len(classes))
    if labels.ndim == 1 and (unread := [name for name, count in zip(classes, counts, strict=True) if not count]):
        raise DataError(f"{path} has classes without readable pictures in train: {', '.join(unread)}")
    return Source(
        name=f"csv:{path}",
        train=train,
        test=test,
        classes=classes,
        licence="yours to know",
        origin=str(path),
        split_rule="by the column split" if "split" in rows[0] else "a fifth held out by path, stratified by class",
        skipped=decoded.skipped,
        repeats=find_repeats({"train": train, "test": test}),
    )


def read_csv(path: Path) -> tuple[Rows, tuple[str, ...]]:
    """The lines of a CSV file, and its header."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            return list(reader), tuple(reader.fieldnames or ())
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no text in UTF-8; save it as CSV in UTF-8") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except csv.Error as error:
        raise DataError(f"{path} cannot be read as CSV ({error})") from error


def printable(name: str) -> str:
    """The name of a file, with bytes that are no UTF-8 written out: such a name can be shown and stored anywhere."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _read_rows(path: Path) -> Rows:
    rows, header = read_csv(path)
    if len(header) == 1 and (other := next((mark for mark in ";\t" if mark in header[0]), None)):
        raise DataError(f"{path}: expected commas between the columns, found {other!r}; save the table with commas")
    if "path" not in header:
        raise DataError(
            f"{path}: expected a column named path in the first line, found {', '.join(header) or 'nothing'}"
        )
    if not rows:
        raise DataError(f"{path} lists no pictures; a line for each one should follow the header")
    lines: dict[str, int] = {}
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values() or not row["path"]:
            raise DataError(f"{path}, line {number}: expected {len(header)} values ({', '.join(header)}), found others")
        picture = os.path.abspath(path.parent / row["path"])  # b/../a.png is a.png, too
        if (first := lines.setdefault(picture, number)) != number:  # else it could stand in both splits
            raise DataError(f"{path}, line {number}: {row['path']} is listed in line {first} already; list it once")
    return [{name: value if name == "path" else value.strip() for name, value in row.items()} for row in rows]


def _read_labels(path: Path, rows: Rows) -> tuple[tuple[str, ...], torch.Tensor]:
    """Names of the classes; int64 ``[N]`` for one class a picture, bool ``[N, K]`` for several."""
    if "label" in rows[0]:
        if nameless := [row["path"] for row in rows if not row["label"]]:
            raise DataError(f"{path}: {len(nameless)} pictures have no label, the first is {nameless[0]}")
        classes = tuple(sorted({row["label"] for row in rows}))
        numbers = {name: number for number, name in enumerate(classes)}
        labels = torch.tensor([numbers[row["label"]] for row in rows])
    elif "labels" in rows[0]:
        shown = [{name.strip() for name in row["labels"].split(";")} - {""} for row in rows]
        classes = tuple(sorted(set().union(*shown)))
        if len(rows) * len(classes) > MOST_CELLS:
            raise DataError(
                f"{path}: {len(rows):,} pictures of {len(classes):,} classes are too many; {MOST_CELLS:,} of pictures "
                "times classes are allowed"
            )
        numbers = {name: number for number, name in enumerate(classes)}
        labels = torch.zeros(len(rows), len(classes), dtype=torch.bool)
        for row_labels, names in zip(labels, shown, strict=True):
            row_labels[[numbers[name] for name in names]] = True
    else:
        classes = tuple(name for name in rows[0] if name not in RESERVED)
        for number, row in enumerate(rows, start=2):
            if wrong := [name for name in classes if row[name] not in ("0", "1")]:
                raise DataError(f"{path}, line {number}: column {wrong[0]!r} should be 0 or 1, found {row[wrong[0]]!r}")
        labels = torch.tensor([[row[name] == "1" for name in classes] for row in rows], dtype=torch.bool)
    if len(classes) < 2:
        raise DataError(f"{path}: telling classes apart takes at least two, found {', '.join(classes) or 'none'}")
    return classes, labels


def _read_groups(path: Path, rows: Rows) -> torch.Tensor | None:
    if "group" not in rows[0]:
        return None
    if nameless := [row["path"] for row in rows if not row["group"]]:
        raise DataError(f"{path}: {len(nameless)} pictures have no group, the first is {nameless[0]}")
    numbers = {group: number for number, group in enumerate(sorted({row["group"] for row in rows}))}
    return torch.tensor([numbers[row["group"]] for row in rows])


def _divided(path: Path, examples: Split, rows: Rows) -> tuple[TrainSplit, TestSplit]:
    if "split" not in rows[0]:
        if len(rows) < 2:
            raise DataError(f"{path}: one readable picture cannot be divided in train and test; list more")
        return split_off_test(examples, 0.2, keys=path_keys([row["path"] for row in rows]))
    if wrong := sorted({row["split"] for row in rows} - {"train", "test"}):
        raise DataError(f"{path}: the column split should say train or test, found {', '.join(map(repr, wrong))}")
    in_train = torch.tensor([row["split"] == "train" for row in rows])
    if bool(in_train.all()) or not bool(in_train.any()):
        raise DataError(f"{path}: the column split puts every picture on one side")
    if examples.groups is not None:
        shared = set(examples.groups[in_train].tolist()) & set(examples.groups[~in_train].tolist())
        if shared:
            raise DataError(f"{path}: {len(shared)} groups stand in train and in test")
    return (
        examples.select(torch.nonzero(in_train)[:, 0], TrainSplit),
        examples.select(torch.nonzero(~in_train)[:, 0], TestSplit),
    )
