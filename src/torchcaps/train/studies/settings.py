"""``settings.json``: the settings that tuning chose for each row of the comparison, and what it chose them by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Annotated

from torchcaps._foreign import read_json_table
from torchcaps.errors import TorchcapsError
from torchcaps.eval.output import write_file
from torchcaps.ranges import Many, Nothing, Number, OneOf, Table, Text, check_values
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.results import StudyResult, read_results

__all__ = ["SETTINGS", "Settings", "choose_settings", "ranked", "tried"]

SETTINGS = "settings.json"
TRIALS = Table(Table(OneOf((Number(0, 100), Nothing()))))


@dataclass(frozen=True)
class Settings:
    """What was chosen.

    Attributes:
        data: the data set of the comparison whose training split was tuned on.
        changes: of the recipe, for each row that was tuned to the end.
        trials: mean error in % on held-out examples of each setting in the round that decided, by row and cell; none
            where training failed.
    """

    data: str
    changes: Annotated[Mapping[str, tuple[str, ...]], Table(Many(Text(1000)))]
    trials: Annotated[Mapping[str, Mapping[str, float | None]], TRIALS] = field(default_factory=dict)

    def write(self, folder: Path, option: str = "--out") -> Path:
        """``settings.json`` in a folder that ``option`` names on the command line, for an error to say."""
        return write_file(folder / SETTINGS, json.dumps(vars(self), indent=2, ensure_ascii=False) + "\n", option)

    def added_to(self, file: Path) -> Settings:
        """These, and of the rows that were not tuned here, what the file holds; rows may be tuned in several places."""
        if not file.is_file():
            return self
        before = Settings.read(file)
        if before.data != self.data:
            raise TorchcapsError(f"{file} was tuned on {before.data}, not on {self.data}; choose another --out")
        return self.laid_over(before)

    def laid_over(self, before: Settings) -> Settings:
        """These, and the others of ``before``."""
        return Settings(self.data, {**before.changes, **self.changes}, {**before.trials, **self.trials})

    @classmethod
    def read(cls, file: Path) -> Settings:
        try:
            facts = read_json_table(file)
            check_values(cls, facts)
            changes = {name: tuple(lines) for name, lines in facts["changes"].items()}
            return cls(facts["data"], changes, facts["trials"])
        except (TorchcapsError, ValueError, KeyError) as error:
            raise TorchcapsError(
                f"{file} holds no settings of a comparison: {error!r}; make them with torchcaps compare --tune"
            ) from error


def choose_settings(data: str, study: Study, root: Path) -> Settings:
    """The best setting of each row of a tuning study whose settings have all been tried; the first of equals."""
    trials = tried(study, root)
    cells = {cell.name: cell.changes for cell in study.cells}
    best = {row: ranked(errors)[:1] for row, errors in trials.items()}
    return Settings(data, {row: cells[name] for row, names in best.items() for name in names}, trials)


def tried(study: Study, root: Path) -> dict[str, dict[str, float | None]]:
    """Mean error in % of each setting, by row and cell, of the rows that have been tuned to the end.

    The mean is over the seeds that all settings of a row have, so that none wins by luck in more draws.
    """
    results = read_results(root, [cell.name for cell in study.cells])
    rows: dict[str, list[str]] = {}
    for cell in study.cells:
        rows.setdefault(cell.name.rpartition(".")[0], []).append(cell.name)
    trials = {}
    for row, cells in rows.items():
        seeds = set.intersection(*({run.seed for run in results[name]} for name in cells))
        if seeds:
            trials[row] = {name: _mean_error([run for run in results[name] if run.seed in seeds]) for name in cells}
    return trials


def ranked(errors: Mapping[str, float | None]) -> list[str]:
    """The trials that did not fail, best first; equals in the order of the grid.

    >>> ranked({"em.1": 3.0, "em.2": None, "em.3": 2.0, "em.4": 2.0})
    ['em.3', 'em.4', 'em.1']
    """
    done = {name: error for name, error in errors.items() if error is not None}
    return sorted(done, key=lambda name: done[name])


def _mean_error(runs: Sequence[StudyResult]) -> float | None:
    return None if any(run.failure for run in runs) else round(fmean(run.error.percent for run in runs), 4)
