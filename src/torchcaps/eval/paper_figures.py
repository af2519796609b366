"""Figures 3, 4 and 5 of the paper, drawn by a trained network from examples that it was not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torchcaps.errors import TorchcapsError
from torchcaps.eval.drawings import TWEAKS, dimension_grid, draw
from torchcaps.eval.examples import Examples
from torchcaps.eval.figures.grids import displayable, pairs_figure, picture_grid
from torchcaps.models import CapsuleModel

__all__ = ["Answers", "answer", "figure_dimensions", "figure_pairs", "figure_reconstructions"]

RIGHT_SHOWN, WRONG_SHOWN, ASKED_SHOWN = 8, 2, 2
BATCH_SIZE = 250


@dataclass(frozen=True)
class Answers:
    """What a model said about some examples, and how sure it was.

    Shape:
        positions: ``[N]``, of the examples. scores: ``[N, J]``. labels: ``[N]``, or ``[N, 2]`` for pairs.
    """

    positions: Tensor
    scores: Tensor
    labels: Tensor

    @property
    def named(self) -> Tensor:
        """As many classes as there are labels, in the order of the class numbers: ``[N]`` or ``[N, 2]``."""
        if self.labels.ndim == 1:
            return self.scores.argmax(dim=1)
        return self.scores.topk(2, dim=1).indices.sort(dim=1).values

    @property
    def is_right(self) -> Tensor:
        if self.labels.ndim == 1:
            return self.named == self.labels
        return (self.named == self.labels.sort(dim=1).values).all(dim=1)

    def right(self, most: int) -> Tensor:
        """Places of right answers, of as many classes as possible first."""
        places = self.is_right.nonzero()[:, 0]
        first = self.labels[places] if self.labels.ndim == 1 else self.labels[places, 0]
        seen: dict[int, int] = {}
        turns = []
        for label in first.tolist():
            seen[label] = seen.get(label, 0) + 1
            turns.append(seen[label])
        order = torch.tensor(turns, dtype=torch.int64).argsort(stable=True)
        return places[order][:most]

    def wrong(self, most: int) -> Tensor:
        """Places of wrong answers, the most confident first."""
        places = (~self.is_right).nonzero()[:, 0]
        return places[self.scores[places].amax(dim=1).argsort(descending=True, stable=True)][:most]


@torch.no_grad()
def answer(model: CapsuleModel, examples: Examples, count: int = 2000) -> Answers:
    """Ask the model about so many examples, evenly spaced."""
    count = min(count, len(examples))
    positions = torch.arange(count) * len(examples) // count
    parts = positions.split(BATCH_SIZE)
    scores = torch.cat([model(examples.images(part)).scores for part in parts])
    return Answers(positions, scores, examples.labels(positions))


def figure_reconstructions(model: CapsuleModel, examples: Examples, answers: Answers) -> Any:
    """Fig. 3: l the label, p what the model named, r the capsule that was drawn; mistakes are drawn both ways."""
    _check_single(answers, 3)
    right, wrong = answers.right(RIGHT_SHOWN), answers.wrong(WRONG_SHOWN)
    twice = wrong.repeat_interleave(2)
    places = torch.cat((right, twice))
    drawn_from = answers.named[places].clone()
    drawn_from[len(right) :: 2] = answers.labels[wrong]
    images = examples.images(answers.positions[places])
    drawn = draw(model, images, drawn_from)
    names = examples.classes
    captions = [
        f"l {names[label]}\np {names[named]}\nr {names[source]}"
        for label, named, source in zip(
            answers.labels[places].tolist(), answers.named[places].tolist(), drawn_from.tolist(), strict=True
        )
    ]
    rows = [list(displayable(images)), list(displayable(drawn))]
    return picture_grid(rows, ("input", "output"), captions=captions)


def figure_dimensions(model: CapsuleModel, examples: Examples, answers: Answers) -> Any:
    """Fig. 4: for each class the dimension of its capsule that changes the drawing most, from −0.25 to 0.25."""
    _check_single(answers, 4)
    rows, labels = [], []
    for j, name in enumerate(examples.classes):
        places = (answers.is_right & (answers.labels == j)).nonzero()[:, 0]
        if not len(places):
            continue
        image = examples.images(answers.positions[places[:1]])[0]
        grid = dimension_grid(model, image, j)  # [D, S, C, H, W]
        widest = int((grid[:, -1] - grid[:, 0]).square().sum(dim=(1, 2, 3)).argmax())
        rows.append(list(displayable(grid[widest])))
        labels.append(f"{name}, dimension {widest + 1}")
    if not rows:
        raise TorchcapsError("the model names none of the examples right, so there is no capsule to take apart")
    steps = [f"{step:+.2f}".replace("-", "−") if step else "0" for step in TWEAKS]
    return picture_grid(rows, labels, steps, column_title="added to the dimension")


def _check_single(answers: Answers, number: int) -> None:
    if answers.labels.dtype == torch.bool:
        raise TorchcapsError(
            f"figure {number} shows pictures of one class each; these show any number of classes, for which there are "
            "`torchcaps reconstruct` and `torchcaps tweak`"
        )
    if answers.labels.ndim != 1:
        raise TorchcapsError(
            f"figure {number} shows single digits; this model learned from pairs, for which there is figure 5"
        )


def figure_pairs(model: CapsuleModel, examples: Examples, answers: Answers) -> Any:
    """Fig. 5: right pairs; mistakes drawn from their labels and from what was named; and, with a star, a digit asked
    for that is not there.
    """
    if answers.labels.ndim != 2 or answers.labels.dtype == torch.bool:
        raise TorchcapsError("figure 5 shows pairs of digits; train on them first, with the recipe multimnist-official")
    right, wrong = answers.right(RIGHT_SHOWN), answers.wrong(WRONG_SHOWN)
    asked = right[:ASKED_SHOWN]
    third = answers.scores[asked].topk(3, dim=1).indices[:, 2]  # of all that are not there, the likeliest
    absent = torch.stack((answers.labels[asked, 0], third), dim=1)
    places = torch.cat((right, wrong, wrong, asked))
    capsules = torch.cat((answers.labels[right], answers.labels[wrong], answers.named[wrong], absent))
    images = examples.images(answers.positions[places])
    drawn = torch.stack([draw(model, images, capsules[:, place]) for place in range(2)], dim=1)
    columns = []
    for place, (labels, sources, named) in enumerate(
        zip(answers.labels[places].tolist(), capsules.tolist(), answers.named[places].tolist(), strict=True)
    ):
        star = "*" if place >= len(places) - len(asked) else ""
        texts = [", ".join(examples.classes[j] for j in pair) for pair in (labels, sources, named)]
        columns.append((texts[0], star + texts[1], texts[2]))
    return pairs_figure(images, drawn, columns)
