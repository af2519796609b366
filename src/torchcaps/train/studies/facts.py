"""Numbers of a run that follow from its records: speed and memory of training, size, couplings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from torchcaps.train.log import read_log
from torchcaps.train.run_folder import METRICS
from torchcaps.train.studies.results import StudyResult, run_path

__all__ = ["FACTS", "Fact", "fact_number", "fact_text"]

FIRST_FIFTH = 0.2  # of the steps: compilation and the search for kernels happen there


@dataclass(frozen=True)
class Fact:
    """A number of one run, or none where the records do not hold it; how a table writes it, and of which seeds."""

    read: Callable[[StudyResult, Path], float | None]
    form: str
    over_seeds: Callable[[Sequence[float]], float] = fmean


def settled_median(metrics: Path, key: str) -> float | None:
    """Median of a number of the log after the first fifth of the steps; none without a log, as for an ensemble."""
    records = [record for record in read_log(metrics, "train") if key in record]
    if not records:
        return None
    settled = [record[key] for record in records if record["step"] > FIRST_FIFTH * records[-1]["step"]]
    return float(median(settled))


def _peak_memory(result: StudyResult, folder: Path) -> float | None:
    peak = settled_median(folder / METRICS, "peak_memory_bytes")
    return None if peak is None else peak / 2**20


def _last_entropy(result: StudyResult, folder: Path) -> float | None:
    layers = list(result.couplings.values())
    return layers[-1].entropy[-1] if layers else None


def _last_parents(result: StudyResult, folder: Path) -> float | None:
    layers = list(result.couplings.values())
    return layers[-1].parents[-1] if layers else None


FACTS = {
    # Of the fastest seed: others may have shared the machine with other work, which can only slow them down.
    "images/s": Fact(lambda result, folder: settled_median(folder / METRICS, "images_per_second"), "{:,.0f}", max),
    # Of the leanest seed: others may count what a run before them left on the device.
    "peak memory in MiB": Fact(_peak_memory, "{:,.0f}", min),
    "parameters": Fact(lambda result, folder: result.parameters, "{:,.0f}"),
    "coupling entropy": Fact(_last_entropy, "{:.3f}"),
    "parents of a child": Fact(_last_parents, "{:.2f}"),
}


def fact_number(name: str, results: Sequence[StudyResult], root: Path) -> float | None:
    """Mean over the finished runs of a cell; the highest speed, the lowest memory."""
    found = [FACTS[name].read(result, run_path(root, result.cell, result.seed)) for result in results]
    numbers = [number for number in found if number is not None]
    return FACTS[name].over_seeds(numbers) if numbers else None


def fact_text(name: str, results: Sequence[StudyResult], root: Path) -> str:
    """That number as a table writes it."""
    number = fact_number(name, results, root)
    return "–" if number is None else FACTS[name].form.format(number)
