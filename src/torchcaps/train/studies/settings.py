"""``settings.json``: the settings that tuning chose for each row of the comparison, and what it chose them by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from torchcaps.errors import TorchcapsError
from torchcaps.eval.output import write_file
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.results import StudyResult, read_results

__all__ = ["SETTINGS", "Settings", "choose_settings"]

SETTINGS = "settings.json"


@dataclass(frozen=True)
class Settings:
    """What was chosen.

    Attributes:
        data: the data set of the comparison whose training split was tuned on.
        changes: of the recipe, for each row that was tuned to the end.
        trials: mean error in % on held-out examples of each setting that was tried, by row and cell; none where
            training failed.
    """

    data: str
    changes: Mapping[str, tuple[str, ...]]
    trials: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        return write_file(folder / SETTINGS, json.dumps(vars(self), indent=2, ensure_ascii=False) + "\n")

    def added_to(self, file: Path) -> Settings:
        """These, and of the rows that were not tuned here, what the file holds; rows may be tuned in several places."""
        if not file.is_file():
            return self
        before = Settings.read(file)
        if before.data != self.data:
            raise TorchcapsError(f"{file} was tuned on {before.data}, not on {self.data}; choose another --out")
        return Settings(self.data, {**before.changes, **self.changes}, {**before.trials, **self.trials})

    @classmethod
    def read(cls, file: Path) -> Settings:
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
            changes = {str(name): tuple(map(str, lines)) for name, lines in facts["changes"].items()}
            return cls(str(facts["data"]), changes, facts["trials"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise TorchcapsError(
                f"{file} holds no settings of a comparison: {error!r}; make them with torchcaps compare --tune"
            ) from error


def choose_settings(data: str, study: Study, root: Path) -> Settings:
    """The best setting of each row of a tuning study whose settings have all been tried; the first of equals.

    Every trial of a row must have the same number of seeds, so that none wins by luck in more draws.
    """
    results = read_results(root, [cell.name for cell in study.cells])
    rows: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for cell in study.cells:
        rows.setdefault(cell.name.rpartition(".")[0], []).append((cell.name, cell.changes))
    changes: dict[str, tuple[str, ...]] = {}
    trials: dict[str, dict[str, float | None]] = {}
    for row, cells in rows.items():
        seeds = {len(results[name]) for name, _ in cells}
        if len(seeds) > 1 or 0 in seeds:
            continue  # not tuned to the end
        errors = {name: _mean_error(results[name]) for name, _ in cells}
        trials[row] = errors
        done = [(error, place) for place, error in enumerate(errors.values()) if error is not None]
        if done:
            changes[row] = cells[min(done)[1]][1]
    return Settings(data, changes, trials)


def _mean_error(runs: Sequence[StudyResult]) -> float | None:
    return None if any(run.failure for run in runs) else round(fmean(run.error.percent for run in runs), 4)
