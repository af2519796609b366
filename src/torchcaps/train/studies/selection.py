"""What choosing on the test set would be worth: the authors' training, measured at every checkpoint on its way.

The test split is read here more than once a run, after training, and by this study alone: it shows what the rule of all
others (the last weights, one look) costs. No recipe and no figure of ours is chosen by it.
"""

from __future__ import annotations

from torchcaps.train.studies.definition import Cell, Study
from torchcaps.train.studies.protocols import LAST_HALF, LOWEST

__all__ = ["SELECTION"]

COLUMNS = ("network", "paper")

SELECTION = Study(
    name="selection",
    title="What choosing on the test set would be worth: test error in % along the training of CapsNet on MNIST",
    cells=(
        Cell(
            "mnist-official",
            "mnist-official",
            words={"network": "CapsNet, the authors' training", "paper": "0.25 ± 0.005"},
        ),
    ),
    columns=COLUMNS,
    split="test",
    protocol="checkpoints",
    extras=(LAST_HALF, LOWEST),
    changes=("data.validation=0.0", "log.checkpoint_every=5000", "log.keep=1000"),
    seeds=2,
    note=(
        "Error: of the last weights, as in every other table. Mean of the last half: over the checkpoints, one every "
        "5,000 steps, of the second half of training. Lowest checkpoint: what one would report after choosing the "
        "checkpoint on the test set, which no other table of ours does."
    ),
)
