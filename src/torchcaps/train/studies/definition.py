"""What a study is: cells, each a recipe with changes, and the split on which they are measured."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch

from torchcaps.errors import TorchcapsError
from torchcaps.train.recipe import Recipe
from torchcaps.train.recipe_files import load_recipe

__all__ = ["AUTHORS_QUEUE", "PAPERS_NETWORK", "STEM", "Cell", "Members", "Study", "joined", "scaled"]

# Records are kept for good, so they are short; a look at the clock, the log or a checkpoint must cost nothing.
LOG = (
    "log.every=1000",
    "log.validate_every=10_000",
    "log.checkpoint_every=50_000",
    "log.keep=1",
    "log.tensorboard=off",
)

# Eight small convolutions in place of CapsNet's first one; or none, in place of a recipe's.
STEM = ("model.stem=[64, 64, 64, 64, 128, 128, 128, 128]", "model.primary_kernel=3")
PAPERS_NETWORK = ("model.stem=[]", "model.primary_kernel=9")
# How the authors' code reads MNIST: in the order of the file, each digit 25 times in a row (once for every shift),
# through a queue of 5,000. Here the shifts of the copies are drawn at random.
AUTHORS_QUEUE = ("data.queue=5000", "data.copies=25", "data.drop_last=false")


@dataclass(frozen=True)
class Members:
    """Seeds 0 … ``count`` − 1 of another cell; all of them, so that none is chosen by its error."""

    cell: str
    count: int


@dataclass(frozen=True)
class Cell:
    """One row of a table: a recipe, what is changed in it, and the words that describe it.

    Attributes:
        name: of the folder, and on the command line.
        recipe, changes: a shipped recipe, and ``section.key=value`` over it.
        words: what the row says, by column.
        members: for an ensemble, the runs that it joins; it trains nothing of its own (:func:`joined`).
    """

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    members: Members | None = None


def joined(name: str, cell: Cell, count: int, words: Mapping[str, str]) -> Cell:
    """A row for the ensemble of seeds 0 … ``count`` − 1 of a cell, which stands before it in the study.

    >>> joined("seven", Cell("one", "cifar10-official"), 7, {}).members
    Members(cell='one', count=7)
    """
    if count < 2:
        raise TorchcapsError(f"an ensemble joins at least 2 seeds of a cell, got {count}")
    return dataclasses.replace(cell, name=name, words=words, members=Members(cell.name, count))


@dataclass(frozen=True)
class Study:
    """Cells that are measured in the same way.

    Attributes:
        columns: the words of each cell that the table shows, in order.
        split: ``"test"``, looked at once by finished runs; or ``"validation"``, where choices are to be made.
        protocol: how a run is measured there, a name of :data:`torchcaps.train.studies.protocols.PROTOCOLS`.
        extras: what else is measured and shown, by name.
        sweeps: series of extras that make curves, names of :data:`torchcaps.eval.SWEEPS`.
        facts: numbers that follow from the records, by a name of :data:`torchcaps.train.studies.facts.FACTS`.
        published: the column that holds what others report, where a figure is to show it beside ours.
        draws_changes: whether a figure is to show the error of each cell beside that of the base.
        page: whether to draw the figures of a comparison and put them on a page with the table.
        changes: laid over every cell's recipe, before its own.
        base: the cell that others are compared with, if any.
        seeds: how many each cell has unless told otherwise.
        folds: each seed holds other examples out, so that more seeds are also more examples to choose by.
        lists_all: the table has a row for what was not run, too; a list of what was tried has not.
        note: what a reader must know, below the table.
    """

    name: str
    title: str
    cells: tuple[Cell, ...]
    columns: tuple[str, ...]
    split: str
    protocol: str = "split"
    extras: tuple[str, ...] = ()
    sweeps: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    published: str | None = None
    draws_changes: bool = False
    page: bool = False
    changes: tuple[str, ...] = ()
    base: str | None = None
    seeds: int = 3
    folds: bool = False
    lists_all: bool = True
    note: str = ""

    def __post_init__(self) -> None:
        known: set[str] = set()
        for cell in self.cells:
            if cell.members is not None and cell.members.cell not in known:
                raise TorchcapsError(
                    f"{self.name}: {cell.name} joins runs of {cell.members.cell!r}, which must be a cell before it"
                )
            known.add(cell.name)

    def members(self, cell: Cell) -> list[tuple[Cell, int]]:
        """The runs, cell and seed, that an ensemble joins; none for a cell that is trained."""
        if cell.members is None:
            return []
        joins = next(other for other in self.cells if other.name == cell.members.cell)
        return [(joins, seed) for seed in range(cell.members.count)]

    def choose(self, patterns: Sequence[str] = ()) -> tuple[Cell, ...]:
        """Cells whose name matches one of the patterns, such as ``"mnist-*"``; all without a pattern."""
        if not patterns:
            return self.cells
        names = [cell.name for cell in self.cells]
        for pattern in patterns:
            if not any(fnmatch(name, pattern) for name in names):
                near = difflib.get_close_matches(pattern, names, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else "."
                raise TorchcapsError(f"{self.name} has no cell {pattern!r}{hint} It has {', '.join(names)}")
        return tuple(cell for cell in self.cells if any(fnmatch(cell.name, pattern) for pattern in patterns))

    def recipe(self, cell: Cell, seed: int, changes: Iterable[str] = (), scale: float = 1.0) -> Recipe:
        """The whole recipe of one run of a cell."""
        fold = (f"data.fold={seed}",) if self.folds else ()
        recipe = load_recipe(cell.recipe, [*LOG, *self.changes, *fold, *cell.changes, *changes, f"seed={seed}"])
        return scaled(recipe, scale)


def scaled(recipe: Recipe, factor: float) -> Recipe:
    """The same recipe, longer or shorter: the decay and the warm-up of the rate follow its length.

    >>> scaled(load_recipe("mnist-official"), 0.1).schedule.decay_steps
    200
    """
    if not 0 < factor < math.inf:
        raise TorchcapsError(f"the scale of a run's length must be a number above 0, got {factor}")
    if factor == 1:
        return recipe
    schedule, training = recipe.schedule, recipe.training
    return dataclasses.replace(
        recipe,
        schedule=dataclasses.replace(
            schedule,
            decay_steps=max(1, round(schedule.decay_steps * factor)),
            warmup_steps=round(schedule.warmup_steps * factor),
        ),
        training=dataclasses.replace(
            training,
            steps=max(1, round(training.steps * factor)) if training.steps else 0,
            epochs=training.epochs * factor,
        ),
    )
