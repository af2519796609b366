"""Images that a folder or a table holds twice: under two classes, or in training and in test."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchcaps.data.source import Split

__all__ = ["Repeats", "find_repeats"]

MOST_NAMED = 3


@dataclass(frozen=True)
class Repeats:
    """Groups of files whose images are equal, pixel for pixel, as they are read at this size.

    Attributes:
        in_two_classes: files of one image that are labelled differently; no network can name all of them right.
        in_two_splits: files of one image and one class of which some are trained on and others tested on.
    """

    in_two_classes: tuple[tuple[str, ...], ...] = ()
    in_two_splits: tuple[tuple[str, ...], ...] = ()

    @property
    def remarks(self) -> list[str]:
        """A sentence for each kind that there is, with the count and the first files."""
        kinds = (
            (self.in_two_classes, "under two classes", "keep each under one"),
            (self.in_two_splits, "in two splits", "what is trained on should not be tested on"),
        )
        return [
            f"{_counted(groups)} there twice, {where}: {_named(groups)}; {advice}"
            for groups, where, advice in kinds
            if groups
        ]


def find_repeats(splits: Mapping[str, Split]) -> Repeats:
    """Compare all images of a source by their pixels; every split has the names of its files.

    It is for readers, which see all files anyway: training is told the result and never looks at a test split. An image
    that stands under two classes is not listed once more for its splits.
    """
    places: defaultdict[bytes, list[tuple[str, int]]] = defaultdict(list)
    for part, split in splits.items():
        for position, pixels in enumerate(split.images.numpy()):
            places[hashlib.blake2b(pixels.tobytes(), digest_size=16).digest()].append((part, position))
    in_two_classes, in_two_splits = [], []
    for group in places.values():
        if len(group) == 1:
            continue
        labels = {tuple(splits[part].labels[[position]].flatten().tolist()) for part, position in group}
        files = tuple((splits[part].files or ())[position] for part, position in group)
        if len(labels) > 1:
            in_two_classes.append(files)
        elif len({part for part, _ in group}) > 1:
            in_two_splits.append(files)
    return Repeats(tuple(sorted(in_two_classes)), tuple(sorted(in_two_splits)))


def _counted(groups: Sequence[Sequence[str]]) -> str:
    return "1 image is" if len(groups) == 1 else f"{len(groups):,} images are"


def _named(groups: Sequence[Sequence[str]]) -> str:
    said = ", ".join(" = ".join(group[:MOST_NAMED]) for group in groups[:MOST_NAMED])
    return said + (f" and {len(groups) - MOST_NAMED:,} more" if len(groups) > MOST_NAMED else "")
