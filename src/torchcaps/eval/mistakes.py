"""The examples that a model gets wrong, by the names of their files: to look at, to relabel, to learn from."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from torchcaps.eval.evaluate import EvaluationResult
from torchcaps.eval.examples import Examples

__all__ = ["Mistake", "list_mistakes", "mistakes_csv"]

BETWEEN = ";"  # several classes of one example, as in the column ``labels`` of a table of pictures


@dataclass(frozen=True)
class Mistake:
    """One example that is wrong.

    Attributes:
        position: in its split, from 0 on.
        file: where it was read from; none where one file holds many examples.
        truth, named: classes that are there and that the model named, each maybe none or several.
        scores: of all classes.
    """

    position: int
    file: str | None
    truth: tuple[str, ...]
    named: tuple[str, ...]
    scores: tuple[float, ...]

    @property
    def name(self) -> str:
        """The file, else the position."""
        return self.file or f"example {self.position}"

    @property
    def change(self) -> str:
        """What was taken for what."""
        return f"{' and '.join(self.truth) or 'nothing'} → {' and '.join(self.named) or 'nothing'}"


def list_mistakes(result: EvaluationResult, examples: Examples) -> list[Mistake]:
    """All examples that are wrong, the most confident mistake first."""

    def classes(present: Tensor) -> tuple[str, ...]:
        return tuple(examples.classes[j] for j in present.nonzero()[:, 0].tolist())

    return [
        Mistake(
            position,
            examples.file(position),
            classes(result.truth[position]),
            classes(result.named[position]),
            tuple(result.scores[position].tolist()),
        )
        for position in result.wrong().tolist()
    ]


def mistakes_csv(mistakes: Sequence[Mistake], classes: Sequence[str]) -> str:
    """A table with a line for each: index, file, true, predicted, and the score of every class."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["index", "file", "true", "predicted", *(f"score {name}" for name in classes)])
    for one in mistakes:
        scores = [f"{score:.6g}" for score in one.scores]
        writer.writerow([one.position, one.file or "", BETWEEN.join(one.truth), BETWEEN.join(one.named), *scores])
    return text.getvalue()
