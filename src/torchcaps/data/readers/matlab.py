"""Sets published as MATLAB files: SVHN, COIL-20 and affNIST."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.data.readers.mat5 import read_mat
from torchcaps.data.source import AnySplit, Split, TestSplit, TrainSplit
from torchcaps.errors import DataError

__all__ = ["affnist_split", "coil20_splits", "coil20_viewpoints", "svhn_split"]

FIRST_NOVEL, LAST_NOVEL = 60, 295  # degrees


def svhn_split(data: bytes, kind: type[AnySplit], *, where: str = "SVHN") -> AnySplit:
    """``X`` uint8 ``[32, 32, 3, N]`` and ``y`` ``[N, 1]``, where the digit 0 carries the label 10."""
    variables = read_mat(data, ("X", "y"), where)
    pixels = _array(variables, "X", where)
    labels = _array(variables, "y", where).reshape(-1)
    if pixels.dtype != np.uint8 or pixels.ndim != 4 or pixels.shape[2] != 3 or not pixels.size:
        raise DataError(f"{where}: expected X as uint8 [H, W, 3, N], found {pixels.dtype} {list(pixels.shape)}")
    _check_count(pixels.shape[3], len(labels), where)
    return kind(
        images=torch.from_numpy(pixels.transpose(3, 2, 0, 1).copy()),  # [N, 3, H, W]
        labels=_labels(labels, 1, 10, where) % 10,
    )


def coil20_splits(data: bytes, *, where: str = "COIL-20") -> tuple[TrainSplit, TestSplit]:
    """Views at even multiples of 5° train, those at odd multiples test: the objects are known, the views are not."""
    everything = _coil20(data, where)
    view = everything.attributes["azimuth"] // 5
    return (
        everything.select(torch.nonzero(view % 2 == 0)[:, 0], TrainSplit),
        everything.select(torch.nonzero(view % 2 == 1)[:, 0], TestSplit),
    )


def coil20_viewpoints(data: bytes, *, where: str = "COIL-20") -> tuple[TrainSplit, TestSplit]:
    """Views from one side train (300° … 355° and 0° … 55°), all others test, up to 120° away from any that was seen.

    The azimuths are those that Hinton, Sabour and Frosst (2018) hold out of smallNORB. An azimuth is a group, so that
    what is held out of the training views to make choices by is also seen from elsewhere.
    """
    everything = _coil20(data, where)
    azimuth = everything.attributes["azimuth"]
    novel = (azimuth >= FIRST_NOVEL) & (azimuth <= LAST_NOVEL)
    grouped = dataclasses.replace(everything, groups=azimuth)
    return (
        grouped.select(torch.nonzero(~novel)[:, 0], TrainSplit),
        grouped.select(torch.nonzero(novel)[:, 0], TestSplit),
    )


def _coil20(data: bytes, where: str) -> Split:
    """``X`` in 0…1 ``[1440, 1024]``, a picture column by column, 72 azimuths an object; ``Y`` 1…20."""
    variables = read_mat(data, ("X", "Y"), where)
    pixels = _array(variables, "X", where)
    labels = _array(variables, "Y", where).reshape(-1)
    if pixels.ndim != 2 or pixels.shape[1] != 1024 or pixels.dtype.kind not in "fu":
        raise DataError(f"{where}: expected X as [N, 1024], found {pixels.dtype} {list(pixels.shape)}")
    _check_count(len(pixels), len(labels), where)
    if len(pixels) % 72 or (labels.reshape(-1, 72) != labels.reshape(-1, 72)[:, :1]).any():
        raise DataError(f"{where}: expected 72 views of each object one after the other, found {len(pixels)} rows")
    if pixels.dtype.kind == "f":
        if not (np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 1):
            raise DataError(f"{where}: expected values from 0 to 1, found {pixels.min()} to {pixels.max()}")
        pixels = np.rint(pixels * 255)
    pictures = pixels.astype(np.uint8).reshape(-1, 1, 32, 32).transpose(0, 1, 3, 2)  # columns first in MATLAB
    view = torch.arange(len(pictures)) % 72
    return Split(
        images=torch.from_numpy(pictures.copy()),
        labels=_labels(labels, 1, 20, where) - 1,
        attributes={"azimuth": view * 5},
    )


def affnist_split(data: bytes, kind: type[AnySplit], *, where: str = "affNIST") -> AnySplit:
    """``affNISTdata`` with ``image`` uint8 ``[1600, N]``, a picture row by row, and ``label_int`` ``[1, N]``."""
    record = read_mat(data, ("affNISTdata",), where)["affNISTdata"]
    if not isinstance(record, dict):
        raise DataError(f"{where}: affNISTdata should be one record with the fields image and label_int")
    pixels = _array(record, "image", where)
    labels = _array(record, "label_int", where).reshape(-1)
    if pixels.dtype != np.uint8 or pixels.ndim != 2 or pixels.shape[0] != 1600:
        raise DataError(f"{where}: expected image as uint8 [1600, N], found {pixels.dtype} {list(pixels.shape)}")
    _check_count(pixels.shape[1], len(labels), where)
    return kind(
        images=torch.from_numpy(pixels.T.reshape(-1, 1, 40, 40).copy()),
        labels=_labels(labels, 0, 9, where),
    )


def _array(variables: Mapping[str, Any], name: str, where: str) -> NDArray[Any]:
    if not isinstance(variables.get(name), np.ndarray):
        raise DataError(f"{where}: expected {name!r} as an array, found {'a record' if name in variables else 'none'}")
    array: NDArray[Any] = variables[name]
    return array


def _check_count(pictures: int, labels: int, where: str) -> None:
    if pictures != labels or not pictures:
        raise DataError(f"{where}: {pictures} pictures but {labels} labels; each picture needs one")


def _labels(labels: NDArray[Any], low: int, high: int, where: str) -> torch.Tensor:
    if labels.dtype.kind not in "iuf" or labels.min() < low or labels.max() > high or (labels % 1).any():
        raise DataError(f"{where}: labels should be whole numbers from {low} to {high}")
    return torch.from_numpy(labels.astype(np.int64))
