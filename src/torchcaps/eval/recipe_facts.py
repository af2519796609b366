"""Which data a run was trained on and how it was prepared, read from its recipe; and the names people give to data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypedDict

from torchcaps.data.augment import Augmentations, build
from torchcaps.data.registry import source_info
from torchcaps.errors import TorchcapsError
from torchcaps.eval.runs import Run
from torchcaps.ranges import Chance, Fold, Pixels, Whole, check_values

__all__ = ["OWN_DATA", "PAIRS", "DataChoice", "RecipeFacts", "check_data_name", "parse_data_name", "recipe_facts"]

PAIRS = "multimnist"
OWN_DATA = ("folder:", "csv:", "npz:", "idx:")
Variant = Literal["paper", "official"]


@dataclass(frozen=True)
class DataChoice:
    """A data set by name, and how two of its pictures are laid over each other where they are."""

    source: str
    variant: Variant | None = None

    def __str__(self) -> str:
        if self.variant is None:
            return self.source
        return f"{PAIRS}:{self.variant}" + ("" if self.source == "mnist" else f":{self.source}")


@dataclass(frozen=True)
class RecipeFacts:
    """The part of a recipe that evaluation needs; the defaults are those of a model without a recipe.

    ``validation`` is the share that training held out: 0 for none, ``None`` where nobody knows; ``fold`` says
    which, and ``consecutive`` that they follow each other.
    """

    data: DataChoice | None = None
    size: int | tuple[int, int] | None = None
    channels: int | None = None
    validation: float | None = None
    fold: int = 0
    consecutive: bool = False
    augment: Augmentations | None = None


def parse_data_name(name: str) -> DataChoice:
    """A name of ``torchcaps data list``, ``folder:PATH`` and so on, or ``multimnist[:paper|official[:NAME]]``.

    Example:
        >>> parse_data_name("multimnist:official")
        DataChoice(source='mnist', variant='official')
    """
    kind, _, rest = name.partition(":")
    if kind != PAIRS:
        return DataChoice(name)
    variant, _, source = rest.partition(":")
    if variant in ("", "paper"):
        return DataChoice(source or "mnist", "paper")
    if variant == "official":
        return DataChoice(source or "mnist", "official")
    raise TorchcapsError(f"MultiMNIST has the variants {PAIRS}:paper and {PAIRS}:official, not {name!r}")


def check_data_name(name: str) -> None:
    """An error unless there is data of that name; it is not read."""
    source = parse_data_name(name).source
    if not source.startswith(OWN_DATA):
        source_info(source)
    elif not Path(place := source.partition(":")[2]).expanduser().exists():
        raise TorchcapsError(f"{name}: there is no {place or 'path behind the colon'}")


class _Section(TypedDict, total=False):
    """The keys of ``[data]`` that are read here."""

    size: Pixels
    channels: Annotated[int, Whole(0, 3)]
    validation: Chance
    fold: Fold
    validation_consecutive: bool


def recipe_facts(run: Run) -> RecipeFacts:
    """Read them from the resolved recipe of a run; a :class:`TorchcapsError` names a value that is out of its range."""
    section = run.recipe.get("data")
    if not isinstance(section, Mapping) or not isinstance(section.get("source"), str):
        return RecipeFacts()
    try:
        check_values(_Section, section, "data.")
    except ValueError as error:
        raise TorchcapsError(f"the recipe of {run.title} is damaged: {error}") from error
    variant: Variant | None = None
    if section.get("task") == PAIRS:
        variant = "official" if section.get("variant") == "official" else "paper"
    steps = section.get("augment") or []
    return RecipeFacts(
        data=DataChoice(section["source"], variant),
        size=section.get("size") or None,
        channels=section.get("channels") or None,
        validation=float(section.get("validation", 0.0)),
        fold=int(section.get("fold", 0)),
        consecutive=bool(section.get("validation_consecutive", False)),
        augment=build(steps) if steps else None,
    )
