"""NumPy ``.npz`` files: MedMNIST's, anyone's own, and the chest X-rays with their patients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.data.contents import read_contents
from torchcaps.data.readers.plain_arrays import Columns, parse_npz
from torchcaps.data.source import AnySplit, Source, Split, TestSplit, TrainSplit, ValidationSplit
from torchcaps.data.splits import split_off_test
from torchcaps.errors import DataError

__all__ = ["chest_xray_splits", "npz_splits", "read_npz_file"]

MOST_CLASSES = 65_536


def npz_splits(
    columns: Columns, where: str = "npz data"
) -> tuple[TrainSplit, ValidationSplit | None, TestSplit | None]:
    """Keys ``train_images``, ``train_labels`` and the same with ``val_`` and ``test_``, as MedMNIST has them.

    No group of ``train_groups``, ``val_groups`` and ``test_groups``, where they are given, may stand in two of them.
    ``images`` and ``labels`` alone (with ``groups`` if there are any) are divided: a fifth, stratified, to test.
    """
    if "train_images" in columns:
        train = _split(columns, "train_", TrainSplit, where)
        validation = _split(columns, "val_", ValidationSplit, where) if "val_images" in columns else None
        test = _split(columns, "test_", TestSplit, where) if "test_images" in columns else None
        _check_groups_apart(columns, where)
        return train, validation, test
    if "images" in columns:
        held_in, held_out = split_off_test(_split(columns, "", Split, where), 0.2)
        return held_in, None, held_out
    known = ", ".join(columns) or "nothing"
    raise DataError(f"{where}: expected the keys train_images and train_labels, or images and labels; found {known}")


def read_npz_file(path: Path) -> Source:
    """A data set from one ``.npz`` file; ``classes``, an array of text, names the classes when present."""
    columns = parse_npz(read_contents(path), str(path))
    train, validation, test = npz_splits(columns, str(path))
    splits = [split for split in (train, validation, test) if split is not None]
    if train.labels.ndim == 2:
        count = train.labels.shape[1]
    else:
        count = max(int(split.labels.max()) for split in splits if len(split)) + 1
    names = _text(columns["classes"]) if "classes" in columns else np.arange(count)
    return Source(
        name=f"npz:{path}",
        train=train,
        validation=validation,
        test=test,
        classes=tuple(map(str, names)),
        licence="yours to know",
        origin=str(path),
        split_rule="as in the file" if "train_images" in columns else "a fifth held out, stratified, seed 0",
    )


def chest_xray_splits(columns: Columns, where: str = "chest X-rays") -> tuple[TrainSplit, TestSplit]:
    """Rows without a finding ("todo") dropped, then a fifth of the patients held out: no patient on both sides."""
    wanted = {"images", "covid19", "patientid", "finding"}
    if missing := wanted - columns.keys():
        raise DataError(
            f"{where}: expected the keys {', '.join(sorted(wanted))}; missing: {', '.join(sorted(missing))}"
        )
    if any(columns[name].ndim != 1 for name in wanted - {"images"}) or not columns["images"].ndim:
        raise DataError(f"{where}: expected one value a picture in covid19, patientid and finding")
    if len({len(columns[name]) for name in wanted}) != 1:
        raise DataError(f"{where}: the columns {', '.join(sorted(wanted))} differ in length")
    known = _text(columns["finding"]) != "todo"
    patients = np.unique(columns["patientid"][known], return_inverse=True)[1]
    rows = {"images": columns["images"][known], "labels": columns["covid19"][known], "groups": patients}
    return split_off_test(_split(rows, "", Split, where), 0.2)


def _split(columns: Columns, prefix: str, kind: type[AnySplit], where: str) -> AnySplit:
    if f"{prefix}labels" not in columns:
        raise DataError(f"{where}: {prefix}images has no {prefix}labels beside it")
    groups = columns.get(f"{prefix}groups")
    split = kind(
        images=_images(columns[f"{prefix}images"], f"{where}, {prefix}images"),
        labels=_labels(columns[f"{prefix}labels"], f"{where}, {prefix}labels"),
        groups=None if groups is None else torch.from_numpy(np.unique(groups, return_inverse=True)[1].reshape(-1)),
    )
    if not split.images.numel():
        raise DataError(f"{where}: {prefix}images holds no picture")
    return split


def _check_groups_apart(columns: Columns, where: str) -> None:
    seen: dict[Any, str] = {}
    for key in ("train_groups", "val_groups", "test_groups"):
        for group in np.unique(columns.get(key, [])).tolist():
            if seen.setdefault(group, key) != key:
                raise DataError(f"{where}: the group {group!r} stands in {seen[group]} and in {key}; keep it in one")


def _images(pixels: NDArray[Any], where: str) -> torch.Tensor:
    """uint8 ``[N, H, W]``, ``[N, H, W, C]`` or ``[N, C, H, W]`` with 1 to 4 channels → ``[N, C, H, W]``."""
    if pixels.dtype != np.uint8:
        raise DataError(f"{where}: expected uint8 values 0…255, found {pixels.dtype}; scale and convert them")
    if pixels.ndim == 3:
        pixels = pixels[:, None]
    elif pixels.ndim == 4 and pixels.shape[3] <= 4:
        pixels = pixels.transpose(0, 3, 1, 2)
    elif pixels.ndim != 4 or pixels.shape[1] > 4:
        raise DataError(f"{where}: expected [N, H, W], [N, H, W, C] or [N, C, H, W], found {list(pixels.shape)}")
    return torch.from_numpy(np.ascontiguousarray(pixels))


def _labels(labels: NDArray[Any], where: str) -> torch.Tensor:
    """Whole numbers ``[N]`` or ``[N, 1]`` → int64 ``[N]``; 0 and 1 in several columns → bool ``[N, K]``."""
    if labels.dtype.kind not in "iub" or labels.ndim not in (1, 2):
        raise DataError(
            f"{where}: expected whole numbers [N], [N, 1] or [N, K], found {labels.dtype} {list(labels.shape)}"
        )
    if labels.ndim == 2 and labels.shape[1] > 1:
        if ((labels != 0) & (labels != 1)).any():
            raise DataError(f"{where}: several columns mean several classes a picture, with 0 and 1 only")
        return torch.from_numpy(labels.astype(bool))
    if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < MOST_CLASSES:
        raise DataError(
            f"{where}: expected numbers from 0 to {MOST_CLASSES - 1:,}, found {labels.min()} to {labels.max()}; "
            "number the classes from 0 on"
        )
    return torch.from_numpy(labels.reshape(-1).astype(np.int64))


def _text(values: NDArray[Any]) -> NDArray[Any]:
    """Values as text ``[N]``; bytes are decoded, whose str would be "b'cat'"."""
    flat = values.reshape(-1)
    return np.char.decode(flat, "utf-8", "replace") if flat.dtype.kind == "S" else flat.astype(str)
