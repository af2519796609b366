"""Procedure 1 and its relatives in plain PyTorch, differentiable to any order."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.squash import squash

__all__ = ["Iteration", "centre_of", "form_votes", "iterate", "output_of"]


class Iteration(NamedTuple):
    """One pass of the loop; J stands before I so that each parent's sum is one matrix product."""

    logits: Tensor  # [B, J, I]
    coefficients: Tensor  # [B, J, I]
    sums: Tensor  # [B, J, D]
    outputs: Tensor  # [B, J, D]
    centres: Tensor  # [B, J, D], which the votes are compared with next


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
        outputs = output_of(sums, options)
        same = options.squashed and options.centre in ("sum", "capsule")  # squashed once
        centres = outputs if same else centre_of(sums, options)
        steps.append(Iteration(logits, coefficients, sums, outputs, centres))
        if not last:
            agreement = (inner @ centres.unsqueeze(3)).squeeze(3)
            logits = logits + agreement if options.centre == "sum" else agreement
    return steps


def centre_of(sums: Tensor, options: RoutingOptions) -> Tensor:
    """What the votes are compared with after an iteration that ended with these sums ``[B, J, D]``."""
    if options.centre == "direction":
        return options.sharpness * squash(sums, kind="unit")
    return options.total_scale(*sums.shape[1:]) * sums if options.centre == "total" else squash(sums)


def output_of(sums: Tensor, options: RoutingOptions) -> Tensor:
    """The capsules of sums ``[B, J, D]``."""
    return squash(sums) if options.squashed else sums


def coupling(logits: Tensor, leaky: bool) -> Tensor:
    """Eq. 3: softmax over the parents, dim 1 of ``[B, J, I]``; leaky adds a parent of logit 0 and drops its share."""
    if not leaky:
        return logits.softmax(dim=1)
    nobody = logits.new_zeros(logits.shape[0], 1, logits.shape[2])
    return torch.cat([nobody, logits], dim=1).softmax(dim=1)[:, 1:]
