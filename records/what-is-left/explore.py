"""What might be left to gain on MNIST: other losses, strokes of other widths, and a CNN of the kind that holds records.

Cells beside those of `torchcaps reproduce writers`, measured in the same way and, in addition, on nine shifted copies
whose class lengths are added. Usage, from the root of the project:

    PYTHONPATH=src python records/what-is-left/explore.py OUT DATA_DIR BUDGET_SECONDS "CELL ..." "SEED ..."
"""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torchcaps import ops
from torchcaps.data.augment.base import Augmentation
from torchcaps.data.augment.pipeline import AUGMENTATIONS
from torchcaps.data.random import RandomStream
from torchcaps.models import register_model
from torchcaps.models.baselines import _Classifier
from torchcaps.models.capsnet import CapsNet
from torchcaps.nn import CapsNetLoss, ConvolutionStem
from torchcaps.train.studies import StudyOptions, run_study, study_table
from torchcaps.train.studies.definition import Cell
from torchcaps.train.studies.measure import Measurement, find_errors, share_of
from torchcaps.train.studies.protocols import PROTOCOLS, Measured, Task
from torchcaps.train.studies.search import SHIFT
from torchcaps.train.studies.writers import DEFORM_SOME, STEMMED, WRITERS

NINE = "nine shifted copies"


@dataclass(frozen=True)
class Ink(Augmentation):
    """Strokes up to ``thicker`` pixels wider on each side, or up to ``thinner`` narrower."""

    thicker: float = 1.0
    thinner: float = 0.5

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        amount = random.uniform(counter, low=-self.thinner, high=self.thicker)[..., None, None]  # [B, 1, 1, 1]
        around = F.pad(images, (1, 1, 1, 1))
        cross = [around[..., 1:-1, :-2], around[..., 1:-1, 2:], around[..., :-2, 1:-1], around[..., 2:, 1:-1], images]
        wide = torch.stack(cross).amax(0)
        narrow = torch.stack(cross).amin(0)
        share = (amount.abs() * 256).to(torch.int32)
        edge = torch.where(amount > 0, wide, narrow).to(torch.int32)
        return ((images.to(torch.int32) * (256 - share) + edge * share + 128) >> 8).to(images.dtype)


AUGMENTATIONS["ink"] = Ink


class CrossEntropy(CapsNetLoss):
    """Cross-entropy of the softmax over 16 times the lengths, in the authors' balance."""

    def class_loss(self, lengths: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(16 * lengths.float(), targets) * (0.5 / lengths.shape[1])


class Trimmed(CapsNetLoss):
    """Margin loss without examples that plainly are another class to the network, after three tenths of a run."""

    def __init__(self, balance: str, reconstruction_scale: float) -> None:
        super().__init__(balance, reconstruction_scale)
        self.register_buffer("limit", torch.tensor(10.0), persistent=False)

    def class_loss(self, lengths: Tensor, targets: Tensor) -> Tensor:
        each = ops.margin_loss(lengths, targets, reduction="none")
        kept = each.detach() < self.limit
        return (each * kept).mean() * (0.5 / lengths.shape[1])

    def set_progress(self, progress: float) -> None:
        self.limit.fill_(10.0 if progress < 0.3 else 0.8)


@register_model("capsnet-cross-entropy")
class CrossEntropyCapsNet(CapsNet):
    def make_loss(self) -> CapsNetLoss:
        return CrossEntropy(self.loss_balance, self.reconstruction_scale)


@register_model("capsnet-trimmed")
class TrimmedCapsNet(CapsNet):
    def make_loss(self) -> CapsNetLoss:
        return Trimmed(self.loss_balance, self.reconstruction_scale)


@register_model("ten-convolutions")
class TenConvolutions(_Classifier):
    """Ten 3×3 convolutions of growing width without pooling, then one linear layer: An et al. 2020, their M3."""

    def __init__(self, image_shape: tuple[int, int, int] = (1, 28, 28), num_classes: int = 10) -> None:
        super().__init__(image_shape, num_classes)
        self.settings = {"image_shape": image_shape, "num_classes": num_classes}
        stem = ConvolutionStem(image_shape[0], range(32, 177, 16))
        places = (image_shape[1] - stem.shrink) * (image_shape[2] - stem.shrink)
        self.features = nn.Sequential(stem, nn.ReLU())
        self.head = nn.Sequential(
            nn.Flatten(), nn.Linear(176 * places, num_classes, bias=False), nn.BatchNorm1d(num_classes)
        )


def split_and_nine_copies(task: Task) -> Measured:
    """A split as it is, and with the scores of nine copies added, shifted by −1, 0 and 1 pixels both ways."""
    measurement = Measurement(task.recipe, task.source, task.split, task.device)
    model = task.model.to(task.device)
    wrong = measurement.errors(model, task.watch)

    class Nine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, images: Tensor) -> Nine.Out:
            padded = F.pad(images, (1, 1, 1, 1))
            H, W = images.shape[-2:]
            return Nine.Out(sum(model(padded[..., y : y + H, x : x + W]).scores for y in range(3) for x in range(3)))

        @dataclass
        class Out:
            scores: Tensor

    nine = find_errors(Nine(), measurement.batches(), measurement.total)
    return Measured(
        measurement.name,
        share_of(wrong),
        measurement.precision,
        {NINE: share_of(nine)},
        wrong=measurement.positions(wrong),
    )


PROTOCOLS["split and nine copies"] = split_and_nine_copies
INK = '{name = "ink"}'
WIDE = (
    '{name = "deform", degrees = 30, shear = 0.2, scale = [0.75, 1.15], translate = 0, pixels = 2.0, spacing = 7, '
    "chance = 0.75}"
)
TURNED = '{name = "deform", degrees = 20, shear = 0.0, scale = [1.0, 1.0], translate = 4, pixels = 0.0, spacing = 7}'
SOME = f"data.augment=[{SHIFT}, {DEFORM_SOME}]"


def _cell(name: str, change: str, *changes: str) -> Cell:
    network = () if changes[0].startswith("model.name=ten") else STEMMED[:2]
    words = {"network": "CNN" if not network else "CapsNet with a stem", "augmentation": name, "change": change}
    return Cell(name, "mnist-best", (*network, *STEMMED[2:], *changes), words)


STUDY = dataclasses.replace(
    WRITERS,
    protocol="split and nine copies",
    extras=(NINE,),
    cells=(
        _cell("some", "the row to compare with", SOME),
        _cell("ink", "strokes of other widths", f"data.augment=[{SHIFT}, {DEFORM_SOME}, {INK}]"),
        _cell("wide-ink", "turned by 30°, strokes of other widths", f"data.augment=[{SHIFT}, {WIDE}, {INK}]"),
        _cell("cross-entropy", "cross-entropy", SOME, "model.name=capsnet-cross-entropy"),
        _cell("trimmed", "plainly other classes left out", SOME, "model.name=capsnet-trimmed"),
        _cell("self-attention", "routing by self-attention", SOME, "model.routing=self-attention"),
        _cell("cnn-turned", "20°, 4 pixels", "model.name=ten-convolutions", f"data.augment=[{TURNED}]"),
        _cell("cnn-some", "as the others", "model.name=ten-convolutions", SOME),
    ),
)


if __name__ == "__main__":
    out, data_dir, budget, cells, seeds = sys.argv[1:]
    options = StudyOptions(
        out=Path(out),
        cells=cells.split(),
        seeds=[int(seed) for seed in seeds.split()],
        budget=float(budget),
        scale=0.6,
        data_dir=Path(data_dir),
        progress=False,
    )
    run_study(STUDY, options)
    print(study_table(STUDY, Path(out)).markdown())
