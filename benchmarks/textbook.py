"""Votes and routing as tutorials write them, for comparison: weights expanded over the batch, sums of products."""

from __future__ import annotations

import torch
from torch import Tensor


def textbook_squash(s: Tensor) -> Tensor:
    squared = (s * s).sum(-1, keepdim=True)
    return squared / (1 + squared) * s / (squared.sqrt() + 1e-8)


def textbook_capsules(u: Tensor, weight: Tensor, iterations: int = 3) -> Tensor:
    """``u`` ``[B, I, P]``, ``weight`` ``[I, J, D, P]`` → ``[B, J, D]``."""
    votes = torch.matmul(weight[None], u[:, :, None, :, None]).squeeze(-1)  # [B, I, J, D]
    logits = torch.zeros(*votes.shape[:3], 1, dtype=u.dtype, device=u.device)
    for iteration in range(iterations):
        coefficients = logits.softmax(dim=2)
        capsules = textbook_squash((coefficients * votes).sum(dim=1, keepdim=True))
        if iteration < iterations - 1:
            logits = logits + (votes * capsules).sum(dim=-1, keepdim=True)
    return capsules.squeeze(1)
