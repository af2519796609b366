"""Beyond Table 1: other data and other capsule networks by the same rules, and a small CNN to compare with."""

from __future__ import annotations

from torchcaps.train.studies.definition import Cell, Study, joined

__all__ = ["MORE"]

COLUMNS = ("data", "network", "published")
ALL_EXAMPLES = "data.validation=0.0"

# What routing adds to a stem: the same network without iterations, and a CNN of similar size (CapsNet has 6.2 M
# parameters, 1.9 M of them to draw).
ONE_PASS = "model.iterations=1"
PAIRS_CNN = ("model.name=small-cnn", "model.multi_label=true", "model.channels=64", "model.hidden=1024")

# How mnist-open was trained before held-out digits chose smaller batches.
LARGE_BATCHES = ("training.batch_size=512", "optimizer.lr=2e-3", "schedule.warmup_steps=500")


def _words(*words: str) -> dict[str, str]:
    return dict(zip(COLUMNS, words, strict=True))


def _cell(name: str, recipe: str, data: str, network: str, published: str, *changes: str) -> Cell:
    return Cell(name, recipe, changes, _words(data, network, published))


CIFAR10 = _cell("cifar10", "cifar10-official", "CIFAR-10", "CapsNet, one network", "–")

MORE = Study(
    name="more",
    title="Beyond Table 1: test error in %",
    cells=(
        _cell("mnist-small-cnn", "mnist-best", "MNIST", "small CNN", "–", "model.name=small-cnn"),
        _cell(
            "mnist-open-batch-512", "mnist-open", "MNIST", "CapsNet with a stem, batches of 512", "–", *LARGE_BATCHES
        ),
        _cell("mnist-efficient-capsnet", "efficient-capsnet", "MNIST", "Efficient-CapsNet", "0.26; together 0.16"),
        _cell("mnist-matrix-capsules", "matrix-capsules", "MNIST", "matrix capsules, A 64, B 8, C 16, D 16", "–"),
        _cell("multimnist-stem-r1", "multimnist-best", "MultiMNIST", "CapsNet with a stem, R = 1", "–", ONE_PASS),
        _cell(
            "multimnist-stem-self-attention",
            *("multimnist-best", "MultiMNIST", "CapsNet with a stem, self-attention", "–"),
            "model.routing=self-attention",
        ),
        _cell("multimnist-small-cnn", "multimnist-best", "MultiMNIST", "small CNN, 5.4 M parameters", "–", *PAIRS_CNN),
        _cell("fashion", "fashion", "Fashion-MNIST", "CapsNet with a stem", "–", ALL_EXAMPLES),
        _cell("fashion-small-cnn", "fashion", "Fashion-MNIST", "small CNN", "–", ALL_EXAMPLES, "model.name=small-cnn"),
        CIFAR10,
        joined("cifar10-ensemble", CIFAR10, 7, _words("CIFAR-10", "CapsNet, 7 networks by added lengths", "10.6")),
    ),
    columns=COLUMNS,
    split="test",
    note=(
        "Trained on the whole training split, measured once a run by the last weights or their average. The ensemble "
        "joins seeds 0 to 6 of the row above it, and its epochs are those of all members together. Published: by the "
        "authors of the network, by their own training; the ensemble by Sabour et al."
    ),
)
