"""Procedure 1 in plain PyTorch, differentiable to any order."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.squash import squash

__all__ = ["Iteration", "form_votes", "iterate"]


class Iteration(NamedTuple):
    """One pass of the loop; J stands before I so that each parent's sum is one matrix product."""

    logits: Tensor  # [B, J, I]
    coefficients: Tensor  # [B, J, I]
    sums: Tensor  # [B, J, D]
    outputs: Tensor  # [B, J, D]


def form_votes(u: Tensor, weight: Tensor) -> Tensor:
    """Eq. 2: û_{j|i} = W_ij u_i as one batched matrix product, no expanded copy.

    Shape:
        u: ``[B, I, P]``. weight: ``[I, J, D, P]`` or shared ``[J, D, P]``. Returns a view ``[B, J, I, D]``.
    """
    (B, I, _), (J, D) = u.shape, weight.shape[-3:-1]
    if weight.ndim == 3:
        return (u @ weight.flatten(0, 1).T).unflatten(2, (J, D)).transpose(1, 2)
    votes = torch.bmm(u.transpose(0, 1), weight.flatten(1, 2).transpose(1, 2))  # [I, B, J·D]
    return votes.view(I, B, J, D).permute(1, 2, 0, 3)


def iterate(votes: Tensor, bias: Tensor | None, options: RoutingOptions) -> list[Iteration]:
    """Route ``votes`` ``[B, J, I, D]`` and keep every iteration.

    Half precision votes are routed in float32, so that only the votes themselves are rounded.
    """
    if votes.dtype in (torch.float16, torch.bfloat16):
        votes = votes.float()
    bias = None if bias is None else bias.to(votes.dtype)
    inner = votes.detach() if options.gradient == "last" else votes
    logits = votes.new_zeros(votes.shape[:3])
    steps: list[Iteration] = []
    for iteration in range(1, options.iterations + 1):
        last = iteration == options.iterations
        coefficients = coupling(logits, options.leaky)
        sums = (coefficients.unsqueeze(2) @ (votes if last else inner)).squeeze(2)
        if bias is not None:
            sums = sums + (bias if last or options.gradient == "all" else bias.detach())
        outputs = squash(sums)
        steps.append(Iteration(logits, coefficients, sums, outputs))
        if not last:
            logits = logits + (inner @ outputs.unsqueeze(3)).squeeze(3)
    return steps


def coupling(logits: Tensor, leaky: bool) -> Tensor:
    """Eq. 3: softmax over the parents, dim 1 of ``[B, J, I]``; leaky adds a parent of logit 0 and drops its share."""
    if not leaky:
        return logits.softmax(dim=1)
    nobody = logits.new_zeros(logits.shape[0], 1, logits.shape[2])
    return torch.cat([nobody, logits], dim=1).softmax(dim=1)[:, 1:]
