"""``result.json``: the error of one finished run, beside the run's recipe and log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from torchcaps._foreign import read_json_table, read_toml_table, shown
from torchcaps.errors import TorchcapsError
from torchcaps.eval import LayerCoupling, Proportion
from torchcaps.eval.output import write_file
from torchcaps.ranges import Anything, Count, Many, Number, Table, Text, Whole, check_values
from torchcaps.train.run_folder import RECIPE

__all__ = ["RESULT", "StudyResult", "read_finished", "read_results", "run_files", "run_path", "saved_recipes"]

RESULT = "result.json"
Measures = Annotated[Sequence[float], Many(Number(), 1, 1000)]  # one for each iteration of a routing


@dataclass(frozen=True)
class StudyResult:
    """One run of a cell.

    Attributes:
        errors, examples: counted on ``split`` of ``data``; both 0 where training failed.
        weights: ``"last"`` or ``"averaged"``, whichever the recipe keeps; or ``"ensemble of 7"``.
        parameters, steps, epochs, training_seconds: of an ensemble, those of its members together.
        extras: what else was counted, (errors, examples) by name.
        couplings: of each capsule layer, from below to above; empty where the study does not look at them.
        failure: why training could not be finished, if it could not.
        members: of an ensemble, the runs that it joins, as ``CELL/seedN`` below the folder of the study.
        wrong: where in the split the wrong examples stand, in one line of the file; ``None`` for examples that are made
            of others (pairs, affine copies), and where a result is older than this.
    """

    cell: str
    seed: Count
    split: str
    data: str
    errors: Count
    examples: Count
    weights: str
    precision: str
    parameters: Count
    steps: Count
    epochs: Annotated[float, Number(0, 1e12)]
    training_seconds: Annotated[float, Number(0, 1e12)]
    extras: Annotated[Mapping[str, Sequence[int]], Table(Many(Whole(0, 10**12), 2, 2))] = field(default_factory=dict)
    failure: str = ""
    couplings: Annotated[Mapping[str, LayerCoupling], Table(Table(Anything()))] = field(default_factory=dict)
    members: Annotated[Sequence[str], Many(Text(1000))] = ()
    wrong: Sequence[int] | None = None

    @property
    def error(self) -> Proportion:
        return Proportion(self.errors, self.examples)

    def extra(self, name: str) -> Proportion:
        """One of the other counts."""
        errors, examples = self.extras[name]
        return Proportion(errors, examples)

    def write(self, folder: Path) -> Path:
        facts: dict[str, Any] = dict(vars(self))
        facts["couplings"] = {name: vars(layer) for name, layer in self.couplings.items()}
        facts["wrong"] = None if self.wrong is None else " ".join(map(str, self.wrong))
        if not self.failure:
            facts["error_percent"] = self.error.percent
            facts["error_percent_interval"] = [round(100 * bound, 4) for bound in self.error.interval]
        return write_file(folder / RESULT, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, file: Path) -> StudyResult:
        try:
            facts = read_json_table(file)
            check_values(cls, {name: value for name, value in facts.items() if name != "wrong"})
            known = {name: facts[name] for name in cls.__dataclass_fields__ if name in facts}
            layers = known.pop("couplings", {})  # results that were written before there were couplings have none
            for name, layer in layers.items():
                check_values(_coupling, layer, f"couplings.{shown(name)}: ")
            known["couplings"] = {name: _coupling(**layer) for name, layer in layers.items()}
            known["members"] = tuple(known.get("members", ()))
            if known.get("wrong") is not None:
                known["wrong"] = tuple(map(int, known["wrong"].split()))
                if len(known["wrong"]) != known.get("errors"):
                    raise ValueError(f"{known.get('errors')} errors, but {len(known['wrong'])} wrong examples")
                if any(not 0 <= position < known["examples"] for position in known["wrong"]):
                    raise ValueError(f"a wrong example lies outside of the {known['examples']}")
            result = cls(**known)
            shares = [(result.errors, result.examples), *result.extras.values()]
            if any(errors > examples or not (examples or result.failure) for errors, examples in shares):
                raise ValueError("there are more errors than examples, or no examples")
            return result
        except (TorchcapsError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise TorchcapsError(
                f"{file} is damaged or no result of a study: {error!r}; remove it to measure again"
            ) from error


def _coupling(upper: Count, entropy: Measures, parents: Measures) -> LayerCoupling:
    return LayerCoupling(upper, tuple(entropy), tuple(parents))


def run_path(root: Path, cell: str, seed: int) -> Path:
    """Where a run of a cell lies below the folder of its study."""
    return root / cell / f"seed{seed}"


def run_files(root: Path, cell: str, name: str) -> list[Path]:
    """That file of each run of a cell below a folder; a copy that someone put aside, ``seed0-old``, is no run."""
    return sorted(file for file in (root / cell).glob(f"seed*/{name}") if file.parent.name[len("seed") :].isdecimal())


def read_results(root: Path, cells: Iterable[str]) -> dict[str, list[StudyResult]]:
    """The ended runs of each cell below a folder, failed ones too, in the order of their seeds."""
    found: dict[str, list[StudyResult]] = {}
    for cell in cells:
        results = [StudyResult.read(file) for file in run_files(root, cell, RESULT)]
        found[cell] = sorted(results, key=lambda result: result.seed)
    return found


def read_finished(root: Path, cells: Iterable[str]) -> dict[str, list[StudyResult]]:
    """The runs of each cell that did not fail; a cell without one has no entry."""
    finished = {
        cell: [result for result in results if not result.failure]
        for cell, results in read_results(root, cells).items()
    }
    return {cell: results for cell, results in finished.items() if results}


def saved_recipes(root: Path, cell: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folder and recipe, as it is written there, of each run of a cell, unfinished ones too; an ensemble has none."""
    for file in run_files(root, cell, RECIPE):
        try:
            yield file.parent, read_toml_table(file)
        except TorchcapsError as error:
            raise TorchcapsError(f"{error}; remove that run to make it again") from error
