"""The paper's test of robustness: networks equal on placed digits, tested on affine copies and on turned ones."""

from __future__ import annotations

from torchcaps.eval import SWEEPS
from torchcaps.train.studies.definition import STEM, Cell, Study
from torchcaps.train.studies.protocols import AWAY_FROM_EDGE

__all__ = ["AFFINE"]

COLUMNS = ("network", "paper")
SAME = "model.padding=same"
SHARED = "model.shared_weights=positions"
ANYWHERE = 'data.augment=[{name = "place", size = 40, by_ink = true}]'


def _cell(name: str, recipe: str, network: str, paper: str, *changes: str) -> Cell:
    return Cell(name, recipe, changes, dict(zip(COLUMNS, (network, paper), strict=True)))


AFFINE = Study(
    name="affine",
    title="Robustness to affine maps at matched accuracy: error in % on affine copies of the test digits",
    cells=(
        _cell("capsnet", "affnist", "CapsNet, R = 3, reconstruction", "21"),
        _cell("stem", "affnist", "CapsNet, stem", "–", *STEM),
        _cell("same", "affnist", "CapsNet, padded", "–", SAME),
        _cell("shared", "affnist", "CapsNet, shared", "–", SHARED),
        _cell("shared-same", "affnist", "CapsNet, padded and shared", "–", SAME, SHARED),
        _cell("twin", "affnist-baseline", "CNN, as many parameters", "34"),
        _cell("capsnet-anywhere", "affnist", "CapsNet, up to the edge", "–", ANYWHERE),
        _cell("twin-anywhere", "affnist-baseline", "CNN, up to the edge", "–", ANYWHERE),
        _cell("baseline", "affnist", "CNN of the paper's MNIST", "–", "model.name=baseline-cnn"),
        _cell("pooled", "affnist", "CNN of the paper's MultiMNIST", "–", "model.name=baseline-cnn-multimnist"),
    ),
    columns=COLUMNS,
    split="test",
    protocol="affine",
    changes=("training.stop_at_accuracy=0.992", "log.validate_every=100"),
    base="capsnet",
    extras=("held out", AWAY_FROM_EDGE),
    sweeps=tuple(SWEEPS),
    note=(
        "Trained on digits at random places of 40×40 and nothing else, until 99.2 % of 6,000 held-out digits, placed "
        "alike, are right for the first time. Tested once on the affnist-like set (32 affine copies of each test "
        "digit), which follows the rules of affNIST but is not affNIST, where the paper measured 79 % and 66 % right. "
        "Stem: eight small convolutions in place of the first. Padded: convolutions keep the size of the picture. "
        "Shared: a type of primary capsules has the same transformations at all positions. The CNN with as many "
        "parameters has batch normalisation and pooling. Up to the edge: trained on digits at any place at which no "
        "ink is lost, as in the test; else the whole picture of 28×28 is placed, and ink keeps 4 pixels from the edge. "
        "Held out: error in % when training stopped. Away from the edge: on copies whose ink keeps 4 pixels from it."
    ),
)
