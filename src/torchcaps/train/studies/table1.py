"""Table 1 of the paper: test error on MNIST and MultiMNIST, by routing iterations and reconstruction."""

from __future__ import annotations

from torchcaps.train.studies.definition import Cell, Study

__all__ = ["TABLE1"]

COLUMNS = ("data", "network", "R", "reconstruction", "paper")
# The authors' code, on pairs as the text has them: shifts of up to 4 pixels, as in the file that they tested with.
PAIRS_OF_THE_TEXT = ("data.variant=paper",)

AS_LONG = ("training.steps=300_000",)  # the baseline is shown as many digits as CapsNet


def _cell(name: str, recipe: str, *words: str, changes: tuple[str, ...] = ()) -> Cell:
    return Cell(name, recipe, changes, dict(zip(COLUMNS, words, strict=True)))


def _capsnet(iterations: int, reconstruction: bool, paper: str) -> Cell:
    changes = (f"model.iterations={iterations}", *(() if reconstruction else ("model.decoder=none",)))
    name = f"mnist-r{iterations}{'-reconstruction' if reconstruction else ''}"
    drawn = "yes" if reconstruction else "no"
    return _cell(name, "mnist-official", "MNIST", "CapsNet", str(iterations), drawn, paper, changes=changes)


def _pairs(iterations: int, paper: str) -> Cell:
    changes = (f"model.iterations={iterations}", *PAIRS_OF_THE_TEXT)
    words = ("MultiMNIST", "CapsNet", str(iterations), "yes", paper)
    return _cell(f"multimnist-r{iterations}", "multimnist-official", *words, changes=changes)


TABLE1 = Study(
    name="table1",
    title="Table 1 of the paper: test error in %",
    cells=(
        _cell("mnist-baseline", "mnist-baseline", "MNIST", "baseline CNN", "–", "–", "0.39", changes=AS_LONG),
        _capsnet(1, False, "0.34 ± 0.032"),
        _capsnet(1, True, "0.29 ± 0.011"),
        _capsnet(3, False, "0.35 ± 0.036"),
        _capsnet(3, True, "0.25 ± 0.005"),
        _cell("mnist-best", "mnist-best", "MNIST", "CapsNet, recipe mnist-best", "3", "yes", "–"),
        _cell("mnist-open", "mnist-open", "MNIST", "CapsNet with a stem, recipe mnist-open", "3", "yes", "–"),
        _cell("multimnist-baseline", "multimnist-baseline", "MultiMNIST", "baseline CNN", "–", "–", "8.1"),
        _pairs(1, "7.5"),
        _pairs(3, "5.2"),
        _cell(
            "multimnist-best",
            "multimnist-best",
            "MultiMNIST",
            "CapsNet with a stem, recipe multimnist-best",
            "3",
            "yes",
            "–",
        ),
    ),
    columns=COLUMNS,
    split="test",
    note=(
        "Trained on all 60,000 digits with shifts of up to 2 pixels (mnist-open: any augmentation), one network each, "
        "no ensemble. The test set is looked at once, by the last weights or their average; nothing is chosen on it. "
        "MultiMNIST: a pair counts as right only if both digits are."
    ),
)
