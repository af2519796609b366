"""The fair table: every routing in the same network, on the same data, with the same budget and seeds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from torchcaps.errors import TorchcapsError
from torchcaps.train.studies.ablation import HELD_OUT
from torchcaps.train.studies.contestants import CONTESTANTS, FINALISTS, TRIALS, Contestant, describe
from torchcaps.train.studies.definition import Cell, Study
from torchcaps.train.studies.facts import FACTS
from torchcaps.train.studies.protocols import TURNS
from torchcaps.train.studies.settings import Settings, choose_settings, ranked, tried

__all__ = ["COMPARED_DATA", "comparison_study", "finals_study", "trial_name", "tuned_settings", "tuning_study"]

# The rate warms up and falls to 0, so that no run is cut off in the middle; the average of the weights is measured.
TRAINING = (
    "optimizer.name=adam",
    "schedule.name=cosine",
    "schedule.floor=0.0",
    "schedule.warmup_steps=500",
    "training.batch_size=128",
    "training.ema=0.999",
    "log.every=100",  # speed is a median over records
)
SHIFTS = 'data.augment=[{name = "shift", pixels = 2}]'
ALL_EXAMPLES = "data.validation=0.0"


@dataclass(frozen=True)
class ComparedData:
    """A data set of the comparison.

    Attributes:
        rule: what a reader must know of it, for the note below the table.
        networks: networks of their own have rows beside the routings.
        hold_out: keep some training examples back and report their error, where the test split is of another kind.
    """

    title: str
    changes: tuple[str, ...]
    rule: str
    networks: bool = False
    hold_out: bool = False


COMPARED_DATA = {
    "mnist": ComparedData(
        "MNIST", ("data.source=mnist", SHIFTS, "training.epochs=50"), "shifts of up to 2 pixels", networks=True
    ),
    "fashion": ComparedData(
        "Fashion-MNIST",
        (
            "data.source=fashion-mnist",
            'data.augment=[{name = "flip"}, {name = "shift", pixels = 2}]',
            "training.epochs=50",
        ),
        "flips and shifts of up to 2 pixels",
    ),
    "multimnist": ComparedData(
        "MultiMNIST",
        (
            "data.source=mnist",
            "data.task=multimnist",
            "data.variant=paper",
            "data.augment=[]",
            "training.steps=50_000",
        ),
        "pairs as in the paper's text; a pair counts as right only if both digits are",
    ),
    "coil20": ComparedData(
        "COIL-20, novel azimuths",
        ("data.source=coil20-azimuths", SHIFTS, "training.steps=6000"),
        "trained on views from 300° to 55°, tested on views from 60° to 295°; held out: error on a sixth of the "
        "azimuths from the trained side; shifts of up to 2 pixels",
        hold_out=True,
    ),
}

COLUMNS = ("routing", "settings")


def comparison_study(data: str, settings: Settings | None = None) -> Study:
    """The comparison on one data set, each routing with its tuned settings, or with its defaults where it has none.

    >>> comparison_study("mnist").split
    'test'
    """
    chosen = _data(data)
    cells = []
    for contestant in _contestants(data):
        tuned = settings.changes.get(contestant.name) if settings else None
        changes = contestant.grid[0] if tuned is None else tuned
        text = describe(changes) + ("" if tuned is not None else " (default, not tuned)")
        cells.append(Cell(contestant.name, contestant.recipe, changes, {"routing": contestant.title, "settings": text}))
    how = (
        "No settings were tuned: these are defaults."
        if settings is None
        else f"Settings were chosen among {TRIALS} for each row by the error on held-out examples of the training "
        f"split of {_data(settings.data).title}, but where the row says otherwise.{_second_round(settings)}"
    )
    return Study(
        name=f"compare-{data}",
        title=f"Routings compared on {chosen.title}: test error in %",
        cells=tuple(cells),
        columns=COLUMNS,
        split="test",
        protocol="routing",
        extras=(*(("held out",) if chosen.hold_out else ()), *(f"turned ±{degrees}°" for degrees in TURNS)),
        facts=tuple(FACTS),
        sweeps=("rotation",),
        page=True,
        changes=(*TRAINING, *chosen.changes, HELD_OUT if chosen.hold_out else ALL_EXAMPLES),
        base="dynamic",
        note=(
            f"CapsNet by the authors' code, decoder included, with each routing in place of its own; {chosen.rule}. "
            f"{how} The test split is looked at once a run, by the average of the weights. Difference: mean error less "
            "that of dynamic routing, with Welch's 95 % interval. Turned: error on the same examples, turned to both "
            "sides, which training never showed. Images/s and peak memory are of training at batch 128, medians "
            "after the first fifth, of the fastest and the leanest seed. Coupling entropy, in nats, and parents of a "
            "child, e to the power of its entropy, are means over the children of the class capsules after the last "
            "iteration: 0 and 1 where every child serves one parent."
        ),
    )


def tuning_study(data: str) -> Study:
    """Every setting of every row on held-out examples of the training split; the test split is not read."""
    chosen = _data(data)
    cells = [
        Cell(
            trial_name(contestant, place),
            contestant.recipe,
            changes,
            {"routing": contestant.title, "settings": describe(changes)},
        )
        for contestant in _contestants(data)
        for place, changes in enumerate(contestant.grid)
    ]
    return Study(
        name=f"tune-{data}",
        title=f"Settings of the routings on {chosen.title}: error in % on held-out examples",
        cells=tuple(cells),
        columns=COLUMNS,
        split="validation",
        changes=(*TRAINING, *chosen.changes, HELD_OUT),
        seeds=1,
        folds=True,
        note=(
            f"{TRIALS} settings for each row, trained alike on five sixths of the training split and measured on the "
            "rest; the test split is not read. The comparison takes the best of each row."
        ),
    )


def finals_study(data: str, first_round: Path) -> Study:
    """The better half of each row's settings by a first round, to be tried again at the length of the comparison."""
    study = tuning_study(data)
    trials = tried(study, first_round)
    names = {name for errors in trials.values() for name in ranked(errors)[:FINALISTS]}
    if not names:
        raise TorchcapsError(f"no row has been tuned to the end in {first_round}; run --tune first")
    return replace(
        study,
        name=f"finals-{data}",
        title=f"{study.title}, second round",
        cells=tuple(cell for cell in study.cells if cell.name in names),
        seeds=3,
        note=(
            f"The best {FINALISTS} of {TRIALS} settings for each row, chosen in shorter runs, trained alike on five "
            "sixths of the training split and measured on the rest, another sixth for each seed; the test split is not "
            "read. The comparison takes the setting of each row with the lowest mean, the first of equals."
        ),
    )


def tuned_settings(data: str, first_round: Path, finals: Path) -> Settings:
    """What two rounds of tuning chose: of a row whose finals have been run, by them; else by the first round."""
    chosen = choose_settings(data, tuning_study(data), first_round)
    if not finals.is_dir() or not chosen.trials:
        return chosen
    return choose_settings(data, finals_study(data, first_round), finals).laid_over(chosen)


def _second_round(settings: Settings) -> str:
    count = sum(len(trials) <= FINALISTS for trials in settings.trials.values())
    rows = "all rows" if count == len(settings.trials) else f"{count} of {len(settings.trials)} rows"
    return f" The last word for {rows} has a second round among the best {FINALISTS}." if count else ""


def trial_name(contestant: Contestant, place: int) -> str:
    """The cell of a setting in :func:`tuning_study`."""
    return f"{contestant.name}.{place + 1}"


def _contestants(data: str) -> list[Contestant]:
    return [contestant for contestant in CONTESTANTS if contestant.routes or COMPARED_DATA[data].networks]


def _data(name: str) -> ComparedData:
    if name not in COMPARED_DATA:
        raise TorchcapsError(f"there is no comparison on {name!r}; choose from {', '.join(COMPARED_DATA)}")
    return COMPARED_DATA[name]
