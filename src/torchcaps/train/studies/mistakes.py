"""Which examples the seeds of one recipe get wrong, and how many of the seeds do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.errors import TorchcapsError
from torchcaps.train.feed import load_source
from torchcaps.train.recipe_files import load_recipe
from torchcaps.train.run_folder import RECIPE
from torchcaps.train.studies.measure import measured_split
from torchcaps.train.studies.results import StudyResult, read_finished, run_files

__all__ = ["Mistakes", "find_mistakes"]


@dataclass(frozen=True)
class Mistakes:
    """Examples that at least one seed gets wrong, those that most seeds get wrong first.

    Attributes:
        data, split: where they stand.
        examples: of the whole split.
        errors: of each seed.
        positions: in the split; equals in its order.
        times: how many seeds get each wrong.
        images: uint8 ``[N, C, H, W]``.
        names: of the true classes of each.
    """

    data: str
    split: str
    examples: int
    errors: tuple[int, ...]
    positions: tuple[int, ...]
    times: tuple[int, ...]
    images: Tensor
    names: tuple[str, ...]

    @property
    def of_all_seeds(self) -> int:
        """How many every seed gets wrong."""
        return self.times.count(len(self.errors))


def find_mistakes(folder: Path, data_dir: Path | None = None) -> Mistakes:
    """Read the results of all seeds below ``folder``, such as ``runs/table1/mnist-best``, and the data they name."""
    results = _results(folder)
    first = results[0]
    recipe = load_recipe(_recipes(folder)[0])
    source = load_source(recipe, data_dir)
    split = measured_split(recipe, source, first.split)
    if source.name != first.data or len(split) != first.examples:
        raise TorchcapsError(
            f"{folder} was measured on {first.examples:,} examples of {first.data}, {first.split}, but here "
            f"{source.name} has {len(split):,}; name the folder of that data with --data-dir"
        )
    times = Counter(position for result in results for position in result.wrong or ())
    positions = sorted(times, key=lambda position: (-times[position], position))
    chosen = torch.tensor(positions, dtype=torch.int64)
    return Mistakes(
        data=first.data,
        split=first.split,
        examples=first.examples,
        errors=tuple(result.errors for result in results),
        positions=tuple(positions),
        times=tuple(times[position] for position in positions),
        images=split.images[chosen],
        names=tuple(_names(label, source.classes) for label in split.labels[chosen]),
    )


def _results(folder: Path) -> list[StudyResult]:
    found = read_finished(folder.parent, [folder.name]).get(folder.name)
    if found is None:
        raise TorchcapsError(
            f"{folder} holds no finished seeds of a study; name the folder of one cell that `torchcaps reproduce` or "
            "`torchcaps compare` has written, such as runs/table1/mnist-best"
        )
    for result in found:
        if result.wrong is None:
            why = "is older than such lists, or counted pairs or copies that are made of others"
            raise TorchcapsError(
                f"the result of seed {result.seed} in {folder} does not list its wrong examples: it {why}"
            )
    folds = {load_recipe(file).data.fold for file in _recipes(folder)}
    measured = {(result.data, result.split, result.examples) for result in found}
    if len(measured) > 1 or (found[0].split == "validation" and len(folds) > 1):
        raise TorchcapsError(f"the seeds in {folder} were measured on different examples, so none is wrong in several")
    return found


def _recipes(folder: Path) -> list[Path]:
    files = run_files(folder.parent, folder.name, RECIPE)
    if not files:
        raise TorchcapsError(f"the runs in {folder} have no recipe, which says what they learned; an ensemble has none")
    return files


def _names(label: Tensor, classes: Sequence[str]) -> str:
    if label.ndim == 0:
        return classes[int(label)]
    return ", ".join(name for name, shown in zip(classes, label.tolist(), strict=True) if shown) or "none"
