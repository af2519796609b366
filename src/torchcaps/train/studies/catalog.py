"""The studies there are, by name."""

from __future__ import annotations

from torchcaps.errors import TorchcapsError
from torchcaps.train.studies.ablation import ABLATION
from torchcaps.train.studies.affine import AFFINE
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.more import MORE
from torchcaps.train.studies.search import SEARCHES
from torchcaps.train.studies.selection import SELECTION
from torchcaps.train.studies.table1 import TABLE1
from torchcaps.train.studies.writers import WRITERS

__all__ = ["get_study", "list_studies"]

STUDIES = {
    "table1": TABLE1,
    "ablation": ABLATION,
    "affine": AFFINE,
    "more": MORE,
    "selection": SELECTION,
    "writers": WRITERS,
}


def list_studies() -> list[str]:
    """Names that :func:`get_study` takes."""
    return [*STUDIES, "search"]


def get_study(name: str, recipe: str | None = None) -> Study:
    """A study by name; a search is a study for each recipe that is searched for.

    >>> get_study("table1").split
    'test'
    """
    if name == "search":
        if recipe not in SEARCHES:
            raise TorchcapsError(f"search needs --recipe, one of {', '.join(SEARCHES)}; got {recipe!r}")
        return SEARCHES[recipe]
    if recipe is not None:
        raise TorchcapsError(f"--recipe belongs to search; {name} has recipes of its own for each cell")
    if name not in STUDIES:
        raise TorchcapsError(f"there is no study {name!r}; choose from {', '.join(list_studies())}")
    return STUDIES[name]
