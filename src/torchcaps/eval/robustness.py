"""How far pictures can be turned, scaled, slanted or shifted before a network no longer knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps.data.moved_digits import Move, move
from torchcaps.data.window import to_unit_float
from torchcaps.eval import metrics
from torchcaps.eval.evaluate import BATCH_SIZE, Watch
from torchcaps.eval.examples import Examples, check_fit
from torchcaps.eval.intervals import Proportion
from torchcaps.eval.precision import full_precision
from torchcaps.models import Model
from torchcaps.models.mode import evaluation_mode

__all__ = ["SWEEPS", "Sweep", "known_range", "sweep_errors"]


@dataclass(frozen=True)
class Sweep:
    """A move, the amounts to try in order, the one that changes nothing, and the words below the curve."""

    kind: Move
    amounts: tuple[float, ...]
    across: str
    neutral: float = 0.0

    def for_move(self, amount: float, width: int) -> float:
        """The amount as :func:`torchcaps.data.move` takes it: a shift in pixels."""
        return amount * width if self.kind.startswith("shift") else amount


SWEEPS = {
    "rotation": Sweep("rotate", tuple(range(-90, 91, 10)), "degrees, clockwise"),
    "scale": Sweep("scale", (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5), "factor", neutral=1.0),
    "shear": Sweep("shear", tuple(range(-40, 41, 10)), "degrees of slant, to the right"),
    "shift": Sweep("shift-x", tuple(step / 20 for step in range(-5, 6)), "widths, to the right"),
}


@torch.no_grad()
def sweep_errors(
    model: Model, examples: Examples, sweep: Sweep, most: int | None = None, watch: Watch | None = None
) -> dict[float, Proportion]:
    """The error at each amount, on a GPU where there is one; the model returns to where it was.

    Args:
        most: how many examples, evenly spaced; all without it.
        watch: ``watch(done, total)`` is called after each batch, with the pictures of all amounts.

    >>> import torchcaps
    >>> from torchcaps.data import sample_digits
    >>> digits = Examples("mnist-sample", "test", tuple("0123456789"), sample_digits("test"))
    >>> model = torchcaps.create_model("small-cnn", channels=2, hidden=4)
    >>> errors = sweep_errors(model, digits, SWEEPS["shear"], most=20)
    >>> list(errors) == list(SWEEPS["shear"].amounts), errors[0].total
    (True, 20)
    """
    check_fit(model, examples)
    count = min(most or len(examples), len(examples))
    positions = torch.arange(count) * len(examples) // count
    labels = examples.labels(positions)
    total, done = count * len(sweep.amounts), 0
    parameter = next(model.parameters())
    home, dtype = parameter.device, parameter.dtype
    device = torch.device("cuda") if torch.cuda.is_available() else home
    errors = {}
    try:
        model.to(device)
        with evaluation_mode(model), full_precision():
            for amount in sweep.amounts:
                scores = []
                for some in positions.split(BATCH_SIZE):
                    scores.append(model(_moved(examples, some, sweep, amount).to(device, dtype)).scores.float().cpu())
                    done += len(some)
                    if watch is not None:
                        watch(done, total)
                errors[amount] = metrics.exact_match_error(torch.cat(scores), labels)
    finally:
        model.to(home)
    return errors


def _moved(examples: Examples, positions: Tensor, sweep: Sweep, amount: float) -> Tensor:
    """What the model sees of moved pictures.

    They are moved once they are cut or placed on a canvas, on which there is room to move, and before their pixels are
    standardised, black coming in.
    """

    def moved(images: Tensor) -> Tensor:
        amounts = torch.full((len(images),), sweep.for_move(amount, images.shape[-1]))
        return move(images, sweep.kind, amounts)

    if examples.pairs is not None and examples.pair_indices is not None:
        return to_unit_float(moved(examples.pairs.pairs(examples.pair_indices[positions]).images))
    images = examples.split.images[positions]
    steps = [] if examples.augment is None else list(examples.augment.steps)
    while steps and (placed := steps[0].evaluate(images)).dtype == torch.uint8:
        images = placed
        del steps[0]
    images = moved(images)
    for step in steps:
        images = step.evaluate(images)
    return to_unit_float(images)


def known_range(errors: Mapping[float, Proportion], neutral: float, percent: float = 5.0) -> tuple[float, float] | None:
    """The amounts around the neutral one up to which the error stays below so many per cent; none if it never does.

    >>> known_range({-10: Proportion(9, 10), 0: Proportion(0, 10), 10: Proportion(0, 10)}, 0)
    (0, 10)
    """
    amounts = sorted(errors)
    if neutral not in errors or errors[neutral].percent >= percent:
        return None
    low = high = amounts.index(neutral)
    while low > 0 and errors[amounts[low - 1]].percent < percent:
        low -= 1
    while high < len(amounts) - 1 and errors[amounts[high + 1]].percent < percent:
        high += 1
    return amounts[low], amounts[high]
