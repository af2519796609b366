"""Refuse a table that would say of its runs what they were not, before anything is trained or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torchcaps.errors import TorchcapsError
from torchcaps.train.overrides import parse_overrides
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.results import read_results, saved_recipes

__all__ = ["check_data", "check_runs", "check_settings"]


def check_runs(study: Study, root: Path) -> None:
    """Refuse a folder without an ended run of the study; its table would be dashes alone."""
    if not any(read_results(root, [cell.name for cell in study.cells]).values()):
        raise TorchcapsError(
            f"there are no runs of {study.name} in {root} to make a table of; name the folder of the runs with --out"
        )


def check_settings(study: Study, root: Path, overrides: Sequence[str] = ()) -> None:
    """Refuse a table that would name other settings than its runs had, or will have with these overrides."""
    for cell in study.cells:
        wanted = _by_key(parse_overrides(cell.changes))
        laid_over = _by_key(parse_overrides([*cell.changes, *overrides]))
        compared = sorted(key for key, value in wanted.items() if laid_over.get(key) != value)
        if compared:
            raise TorchcapsError(
                f"{', '.join(compared)} is what is compared and cannot be set for all rows; leave it out"
            )
        for folder, saved in saved_recipes(root, cell.name):
            had = _by_key(saved)
            for key, value in wanted.items():
                if had.get(key) != value:
                    raise TorchcapsError(
                        f"{folder} was trained with {key} = {had.get(key)!r}, but the settings of the comparison say "
                        f"{value!r}; give the --settings it was trained with, or another --out"
                    )


def check_data(study: Study, root: Path, overrides: Sequence[str] = ()) -> None:
    """Refuse runs on other data than the study, with these overrides, has; its title would be theirs."""
    for cell in study.cells:
        for folder, saved in saved_recipes(root, cell.name):
            data = study.recipe(cell, 0, overrides).data
            had = _by_key(saved)
            for key, value in (("data.source", data.source), ("data.task", data.task)):
                if had.get(key, value) != value:
                    raise TorchcapsError(
                        f"{folder} was trained with {key} = {had[key]!r}, but {study.name} has {value!r}; give the "
                        f"--data or the --set {key}=… that it was trained with, or another --out"
                    )


def _by_key(table: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a recipe's sections by ``section.key``; a value may be a table itself."""
    sections = {name: keys for name, keys in table.items() if isinstance(keys, Mapping)}
    return {f"{name}.{key}": value for name, keys in sections.items() for key, value in keys.items()}
