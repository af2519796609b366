"""One training step as a function of what lies on the device: nothing comes back to the host, so it can be captured."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import torch
from torch import Tensor, nn

from torchcaps.train.ema import WeightAverage
from torchcaps.train.feed import Example, Feed
from torchcaps.train.objective import StepTerms
from torchcaps.train.recipe import OptimizerSection
from torchcaps.train.sharpness import uphill

__all__ = ["TrainingStep", "make_optimizer"]

METER = ("loss", "margin", "reconstruction", "wrong", "examples", "steps")


class TrainingStep:
    """Batch, augmentation, forward, backward, clipping, optimiser and average of the weights.

    With ``optimizer.sharpness`` the gradient is taken a little uphill of the weights, by a second pass.

    Before each call :meth:`prepare` writes the step number, the rate, what the loss takes from the progress and the
    share of the average to their fixed addresses; the call itself reads nothing else. Losses and errors are added up
    on the device in ``meter``.

    Args:
        set_progress: called with the share of the training that is over, before each step.
    """

    def __init__(
        self,
        objective: nn.Module,
        optimizer: torch.optim.Optimizer,
        feed: Feed,
        average: WeightAverage | None,
        section: OptimizerSection,
        seed: int,
        rank: int = 0,
        set_progress: Callable[[float], None] | None = None,
    ) -> None:
        self.objective = objective
        self.optimizer = optimizer
        self.feed = feed
        self.batch: Callable[[Tensor], Example] = feed.batch
        self.average = average
        self.clip_norm, self.sharpness = section.clip_norm, section.sharpness
        self._set_progress = set_progress
        self._seed, self._rank = seed, rank
        device = feed.loader.device
        self.step = torch.zeros((), dtype=torch.int64, device=device)
        self.meter = torch.zeros(len(METER), dtype=torch.float64, device=device)
        share = feed.loader.positions(self.step).shape[0]
        self._counts = torch.tensor([share, 1], dtype=torch.float64, device=device)
        self._parameters: list[Tensor] = [p for group in optimizer.param_groups for p in group["params"]]

    def prepare(self, step: int, learning_rate: float, progress: float = 0.0) -> None:
        """Host work before a step: small, and without waiting for the device."""
        self.feed.loader.prepare(step)
        self.step.fill_(step)
        for group in self.optimizer.param_groups:
            group["lr"].fill_(learning_rate)
        if self._set_progress is not None:
            self._set_progress(progress)
        if self.average is not None:
            self.average.prepare(step)
        # Dropout and the like: the numbers of a step follow from the step, so there is no state to save.
        torch.manual_seed(step_seed(self._seed, step, self._rank))

    def __call__(self) -> None:
        example = self.batch(self.step)
        total, margin, reconstruction, wrong = self._gradients(example)
        if self.sharpness:
            with uphill(self._parameters, self.sharpness):
                self._gradients(example)
        if self.clip_norm:
            nn.utils.clip_grad_norm_(self._parameters, self.clip_norm)
        self.optimizer.step()
        if self.average is not None:
            self.average.update()
        self.meter[:4] += torch.stack([total.detach(), margin, reconstruction, wrong.to(total)])
        self.meter[4:] += self._counts

    def _gradients(self, example: Example) -> StepTerms:
        self.optimizer.zero_grad(set_to_none=True)
        terms: StepTerms = self.objective(*example)
        terms[0].backward()
        return terms


def make_optimizer(section: OptimizerSection, model: nn.Module, device: torch.device) -> torch.optim.Optimizer:
    """Adam or AdamW in one kernel, its rate a tensor on the device."""
    kinds: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds[section.name](
        model.parameters(),
        lr=torch.tensor(section.lr, device=device),
        betas=(section.betas[0], section.betas[1]),
        eps=section.eps,
        weight_decay=section.weight_decay,
        fused=True,
        capturable=device.type == "cuda",
    )


def step_seed(seed: int, step: int, rank: int) -> int:
    """A number for torch's generator that differs for each seed, step and process."""
    digest = hashlib.blake2b(f"{seed}/{step}/{rank}".encode(), digest_size=6).digest()
    return int.from_bytes(digest, "little")
