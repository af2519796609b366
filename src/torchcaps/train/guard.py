"""Losses that are no numbers: stop, keep the last good checkpoint, say what to try."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from torch import nn

from torchcaps.errors import TorchcapsError
from torchcaps.train.recipe import Recipe

__all__ = ["NonFiniteError", "check_loss", "weights_are_finite"]


class NonFiniteError(TorchcapsError):
    """The loss or the weights became NaN or infinite."""


def check_loss(loss: float, step: int, recipe: Recipe, last_good: Path | None) -> None:
    """Raise when the mean loss of the last steps is no finite number."""
    if math.isfinite(loss):
        return
    tries = [f"a lower rate (optimizer.lr={recipe.optimizer.lr / 3:.1e})"]
    if not recipe.optimizer.clip_norm:
        tries.append("clipped gradients (optimizer.clip_norm=1)")
    if recipe.training.precision != "fp32":
        tries.append("full precision (training.precision=fp32)")
    if not recipe.schedule.warmup_steps:
        tries.append("a warm-up (schedule.warmup_steps=500)")
    kept = f"The last good checkpoint stays: {last_good}" if last_good else "No checkpoint had been written yet"
    raise NonFiniteError(
        f"the loss became {loss} at or shortly before step {step}, so training stopped. {kept}. "
        f"Start a new run with {', or '.join(tries)}; and look at the pictures for broken ones"
    )


def weights_are_finite(model: nn.Module) -> bool:
    """Whether every weight is a finite number; waits for the device once."""
    sums = torch._foreach_norm([p.detach() for p in model.parameters()])
    return bool(torch.isfinite(torch.stack(list(sums))).all())
