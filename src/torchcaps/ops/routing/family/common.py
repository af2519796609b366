"""What all routings of the family share: checked arguments, one precision, and the record of what happened."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

from torchcaps.ops.routing.checks import check_bias, check_mask, check_sizes
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.routing.trace import RoutingTrace
from torchcaps.ops.squash import capsule_lengths

__all__ = ["Prepared", "Recorder", "check_iterations", "prepare", "squashed_output", "standardized", "without_autocast"]

AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps")  # asking torch for others is a call that compilers cannot trace
STANDARD_FLOOR = 1e-4  # of a variance over parents
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Prepared(NamedTuple):
    """Arguments of a routing, checked and in at least float32.

    Shape:
        votes: ``[B, I, J, D]``, zero where masked. activations: ``[B, I]``, 1 where none were given and 0 where masked.
        bias: ``[J, D]``. mask: bool ``[B, I]``.
    """

    votes: Tensor
    activations: Tensor
    bias: Tensor | None
    mask: Tensor | None


def prepare(
    votes: Tensor, mask: Tensor | None = None, bias: Tensor | None = None, activations: Tensor | None = None
) -> Prepared:
    """Check the arguments; half precision is routed in float32, so that only the votes themselves are rounded."""
    if votes.ndim != 4 or not votes.is_floating_point():
        raise ValueError(
            f"votes must be floating point [B, I, J, D], got {votes.dtype} {list(votes.shape)}; "
            "ops.votes(u, weight) makes them from lower capsules"
        )
    B, I, J, D = votes.shape
    check_sizes(I=I, J=J, D=D)
    check_bias(bias, J, D)
    dtype = torch.float32 if votes.dtype in (torch.float16, torch.bfloat16) else votes.dtype
    votes = votes.to(dtype)
    if activations is None:
        activations = votes.new_ones(B, I)
    elif tuple(activations.shape) != (B, I):
        raise ValueError(f"activations must be [B, I] = [{B}, {I}], got {list(activations.shape)}")
    activations = activations.to(dtype)
    if mask is not None:
        mask = check_mask(mask, B, I)
        votes = votes.masked_fill(~mask[:, :, None, None], 0)
        activations = activations.masked_fill(~mask, 0)
    return Prepared(votes, activations, None if bias is None else bias.to(dtype), mask)


def check_iterations(iterations: int) -> int:
    """The number itself, or an error."""
    if not isinstance(iterations, int) or isinstance(iterations, bool) or iterations < 1:
        raise ValueError(f"iterations must be a whole number of at least 1, got {iterations!r}; 3 is usual")
    return iterations


class Recorder:
    """Collects the iterations of a routing when a trace is wanted."""

    def __init__(self, wanted: bool, mask: Tensor | None) -> None:
        self.wanted, self.mask = wanted, mask
        self.steps: list[tuple[Tensor, Tensor, Tensor]] = []
        self.activations: list[Tensor] = []

    def add(self, logits: Tensor, coefficients: Tensor, outputs: Tensor, activations: Tensor | None = None) -> None:
        """Note one iteration: ``[B, I, J]`` twice, ``[B, J, D]`` and, where they are no lengths, ``[B, J]``."""
        if not self.wanted:
            return
        if self.mask is not None:
            coefficients = coefficients * self.mask.unsqueeze(2)
        self.steps.append((logits, coefficients, outputs))
        if activations is not None:
            self.activations.append(activations)

    def trace(self) -> RoutingTrace | None:
        if not self.wanted:
            return None
        logits, coefficients, outputs = (torch.stack(parts) for parts in zip(*self.steps, strict=True))
        return RoutingTrace(logits, coefficients, outputs, torch.stack(self.activations) if self.activations else None)


def standardized(costs: Tensor) -> Tensor:
    """Costs ``[B, J]`` with mean 0 and deviation 1 over the parents; all 0 where they are equal, as for zero votes."""
    spread, average = torch.var_mean(costs, dim=1, correction=0, keepdim=True)
    return (costs - average) / (spread + STANDARD_FLOOR).sqrt()


def squashed_output(capsules: Tensor, dtype: torch.dtype, recorder: Recorder) -> RoutingOutput:
    """The result of a routing whose capsules are squashed: their lengths are the activations."""
    capsules = capsules.to(dtype)
    return RoutingOutput(capsules, capsule_lengths(capsules), recorder.trace())


def without_autocast(routing: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Decorator: a routing chooses its precision itself; only the votes come in that of autocast."""

    @functools.wraps(routing)
    def wrapped(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        first = arguments[0] if arguments else next(iter(keywords.values()))
        device = first.device.type if isinstance(first, Tensor) else "cpu"
        on = device in AUTOCAST_DEVICES and torch.is_autocast_enabled(device)
        with torch.autocast(device, enabled=False) if on else contextlib.nullcontext():
            return routing(*arguments, **keywords)

    return wrapped
