"""What all routings of the family share: checked arguments, one precision, and the record of what happened."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.ops.routing.checks import check_mask, check_shape, check_sizes
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.routing.trace import RoutingTrace
from torchcaps.ops.squash import capsule_lengths

__all__ = ["Prepared", "Recorder", "check_iterations", "child_shares", "prepare", "squashed_output", "standardized"]

LEAST_ACTIVATION = 1e-12  # in a logarithm or a quotient; what is less counts as this, and gets no gradient


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
    check_shape("bias", bias, J=J, D=D)
    check_shape("activations", activations, B=B, I=I)
    dtype = torch.float32 if votes.dtype in (torch.float16, torch.bfloat16) else votes.dtype
    votes = votes.to(dtype)
    if activations is None:
        activations = votes.new_ones(B, I)
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


def child_shares(logits: Tensor, ready: Prepared) -> Tensor:
    r"""Of what a parent receives, the share of each child, ``[B, I, J]``; all 0 where no child is present.

    With :math:`c_{ij} = \mathrm{softmax}_j` of the logits this is :math:`c_{ij} a_i / \sum_k c_{kj} a_k`, taken as
    :math:`\mathrm{softmax}_i(\ln c_{ij} + \ln a_i)`: a parent to which next to nothing is sent
    has finite gradients, too.
    """
    amounts = logits.log_softmax(dim=2) + ready.activations.clamp(min=LEAST_ACTIVATION).log().unsqueeze(2)
    if ready.mask is not None:
        amounts = amounts.masked_fill(~ready.mask.unsqueeze(2), torch.finfo(amounts.dtype).min)
    silent = (ready.activations == 0).all(dim=1)
    return amounts.softmax(dim=1).masked_fill(silent[:, None, None], 0)


def standardized(costs: Tensor, floor: float) -> Tensor:
    """Costs ``[B, J]`` with mean 0 and deviation 1 over the parents, less where their variance is below ``floor``.

    Without a floor two costs would always be +1 and −1, by however little they differ, and have no gradient.
    """
    centred = costs - costs.mean(dim=1, keepdim=True)
    return centred / (centred.square().mean(dim=1, keepdim=True) + floor).sqrt()  # var_mean warns of an empty batch


def squashed_output(capsules: Tensor, dtype: torch.dtype, recorder: Recorder) -> RoutingOutput:
    """The result of a routing whose capsules are squashed: their lengths are the activations."""
    capsules = capsules.to(dtype)
    return RoutingOutput(capsules, capsule_lengths(capsules), recorder.trace())
