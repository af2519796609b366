"""The classes of a model and those of data, paired by name; where the names say that they differ, that is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from torchcaps.data.catalog import CATALOG
from torchcaps.data.source import Split
from torchcaps.errors import TorchcapsError
from torchcaps.eval.runs import Run

__all__ = ["check_same_classes", "known_classes", "pair_classes"]

Names = tuple[str, ...]
NAMED = ("folder:", "csv:")
MOST_LISTED = 12


def known_classes(run: Run) -> Names | None:
    """The names of a model's classes; nothing where there are none, or only the numbers of nameless classes."""
    facts, section = run.facts.get("data"), run.recipe.get("data")
    trained_on = facts.get("name") if isinstance(facts, Mapping) else None
    if trained_on is None and isinstance(section, Mapping):
        trained_on = section.get("source")
    return None if run.class_names is None else _names(run.class_names, str(trained_on))


def pair_classes(run: Run, num_classes: int, source: str, classes: Names, split: Split) -> tuple[Names, Split]:
    """The names and the labels of a split in the order in which the model has its classes.

    The data may lack some of the model's classes. Where either has no names, all stays as it is: only the number of
    classes can be compared then. Names that the model does not have are an error.

    Args:
        source, classes: name of the data and of its classes, to which the labels of ``split`` belong.
    """
    own, others = known_classes(run), _names(classes, source)
    if own is None or others is None or len(own) != num_classes or own == others:
        return classes, split
    if not set(others) <= set(own):
        raise TorchcapsError(
            f"the model tells apart {_listed(own)}, but the classes of {source} are {_listed(others)}; give data "
            "whose classes have the names of the model's with --data"
        )
    places = torch.tensor([own.index(name) for name in others])
    if split.labels.ndim == 1:
        return own, replace(split, labels=places[split.labels])
    labels = split.labels.new_zeros(len(split), len(own))
    labels[:, places] = split.labels
    return own, replace(split, labels=labels)


def check_same_classes(runs: Sequence[Run]) -> None:
    """Raise where models that answer together, or are compared, tell different classes apart."""
    known = [(run.title, names) for run in runs if (names := known_classes(run)) is not None]
    for title, names in known[1:]:
        if names != known[0][1]:
            raise TorchcapsError(
                f"models that are measured together must tell the same classes apart, but {known[0][0]} has "
                f"{_listed(known[0][1])}, and {title} has {_listed(names)}; leave one of them out"
            )


def _names(classes: Names, source: str) -> Names | None:
    """Numbers are names where people gave them (digits, a folder), not where a file holds nothing but numbers."""
    numbered = classes == tuple(map(str, range(len(classes))))
    given = source in CATALOG or source.startswith(NAMED)
    return None if (numbered and not given) or len(set(classes)) < len(classes) else classes


def _listed(names: Names) -> str:
    shown = ", ".join(names[:MOST_LISTED])
    return shown if len(names) <= MOST_LISTED else f"{shown} and {len(names) - MOST_LISTED} more"
