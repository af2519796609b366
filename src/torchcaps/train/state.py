"""Everything that the next step depends on, as named tensors: what a checkpoint holds besides the weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.models import Model
from torchcaps.train.checkpoint import Checkpoint, CheckpointError, load_checkpoint
from torchcaps.train.ema import WeightAverage

__all__ = ["TrainingState"]


class TrainingState:
    """Weights, optimiser, average of the weights and the sums of the log of one run."""

    def __init__(
        self, model: Model, optimizer: torch.optim.Optimizer, average: WeightAverage | None, meter: Tensor
    ) -> None:
        self.model, self.optimizer, self.average, self.meter = model, optimizer, average, meter

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor besides the weights, by name; they are the live ones, not copies."""
        tensors = {"meter": self.meter}
        for name, parameter in self.model.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer/{name}/{key}"] = value
        if self.average is not None:
            tensors |= {f"average/{name}": value for name, value in self.average.model.state_dict().items()}
        return tensors

    def restore(self, path: Path) -> Checkpoint:
        """Take over what a checkpoint holds, in place: addresses and memory formats stay."""
        self._create_optimizer_state()
        checkpoint = load_checkpoint(path, self.model, self.tensors())
        _check_sums(checkpoint)
        _copy_into(self.model.state_dict(), checkpoint.weights)
        _copy_into(self.tensors(), checkpoint.tensors)
        return checkpoint

    def _create_optimizer_state(self) -> None:
        """Let the optimiser make its tensors where and how it wants them, by a step whose effect is overwritten."""
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def _check_sums(checkpoint: Checkpoint) -> None:
    """The optimiser has counted the steps of the run, and what is a sum of squares or of counts is not negative."""
    for name, tensor in checkpoint.tensors.items():
        kind, _, key = name.rpartition("/")
        if kind.startswith("optimizer/") and key == "step" and float(tensor) != checkpoint.values["step"]:
            wrong = f"{float(tensor):g}, not {checkpoint.values['step']}, the number of steps"
        elif (key == "exp_avg_sq" or name == "meter") and bool((tensor < 0).any()):
            wrong = f"{float(tensor.min()):g} somewhere, not 0 or more"
        else:
            continue
        raise CheckpointError(f"the checkpoint {checkpoint.path} is damaged: {name} is {wrong}. Remove that folder")


def _copy_into(live: Mapping[str, Tensor], saved: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in live.items():
            tensor.copy_(saved[name])
