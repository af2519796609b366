"""One run, measured: all that the sections of its report are made from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from torchcaps.eval.evaluate import EvaluationResult, can_reconstruct
from torchcaps.eval.examples import DEFAULT_PAIRS, Examples, choose_examples
from torchcaps.eval.runs import Run, load_model, open_run
from torchcaps.models import CapsuleModel, Model

__all__ = ["MeasuredRun", "measure_run"]


@dataclass(frozen=True)
class MeasuredRun:
    """A run, its model, the examples and what the model made of them. ``slug`` is its name inside the page."""

    run: Run
    model: Model
    examples: Examples
    result: EvaluationResult
    slug: str

    @property
    def parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())

    @property
    def drawing_model(self) -> CapsuleModel | None:
        """The model where it can draw."""
        return self.model if isinstance(self.model, CapsuleModel) and can_reconstruct(self.model) else None

    @property
    def right(self) -> Tensor:
        """Positions of the examples that are right, in order."""
        return (self.result.named == self.result.truth).all(dim=1).nonzero()[:, 0]

    @property
    def recipe_without_seed(self) -> str | None:
        """Equal for runs that differ in their seed alone; ``None`` where no recipe is known."""
        if not self.run.recipe:
            return None
        kept = {
            key: value for key, value in self.run.recipe.items() if key not in ("seed", "name", "description", "log")
        }
        return json.dumps([kept, self.examples.name, self.examples.split_name], sort_keys=True, default=str)

    def class_names(self, present: Tensor) -> str:
        """The names of the classes in a bool row ``[J]``."""
        names = [self.examples.classes[j] for j in present.nonzero()[:, 0].tolist()]
        return " and ".join(names) or "nothing"


def measure_run(
    path: str | Path,
    data_name: str | None = None,
    split_name: str = "test",
    data_dir: Path | None = None,
    pairs: int = DEFAULT_PAIRS,
    slug: str = "run",
) -> MeasuredRun:
    """Load the model of a run and evaluate it on its data."""
    run = open_run(path)
    model = load_model(run)
    examples = choose_examples(run, model, data_name, split_name, data_dir, pairs)
    return MeasuredRun(run, model, examples, examples.evaluate(model), slug)
