"""Beyond Table 1: other data by the same rules, and a small convolutional network to compare with."""

from __future__ import annotations

from torchcaps.train.studies.definition import Cell, Study

__all__ = ["MORE"]

COLUMNS = ("data", "network", "paper")
ALL_EXAMPLES = "data.validation=0.0"


def _cell(name: str, recipe: str, data: str, network: str, paper: str, *changes: str) -> Cell:
    return Cell(name, recipe, changes, dict(zip(COLUMNS, (data, network, paper), strict=True)))


MORE = Study(
    name="more",
    title="Beyond Table 1: test error in %",
    cells=(
        _cell("mnist-small-cnn", "mnist-best", "MNIST", "small CNN", "–", "model.name=small-cnn"),
        _cell("fashion", "fashion", "Fashion-MNIST", "CapsNet", "–", ALL_EXAMPLES),
        _cell("fashion-small-cnn", "fashion", "Fashion-MNIST", "small CNN", "–", ALL_EXAMPLES, "model.name=small-cnn"),
        _cell("cifar10", "cifar10-official", "CIFAR-10", "CapsNet, one network", "10.6 with 7 networks"),
    ),
    columns=COLUMNS,
    split="test",
    note="Trained on the whole training split, measured once a run by the last weights or their average.",
)
