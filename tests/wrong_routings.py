"""Five mistakes found in public capsule networks. Each must be named by ``check_routing`` in the right words."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops import squash


def _loop(votes: Tensor, iterations: int, *, softmax_dim: int = 2, inner: Tensor | None = None) -> Tensor:
    """A sound loop but for what the arguments break; ``inner`` are the votes of all iterations but the last."""
    inner = votes if inner is None else inner
    logits = votes.new_zeros(votes.shape[:3])
    for iteration in range(iterations):
        last = iteration == iterations - 1
        coefficients = logits.softmax(dim=softmax_dim)
        capsules = squash(torch.einsum("bij,bijd->bjd", coefficients, votes if last else inner))
        logits = logits + torch.einsum("bijd,bjd->bij", inner, capsules)
    return capsules


def softmax_over_children(votes: Tensor, iterations: int = 3) -> Tensor:
    return _loop(votes, iterations, softmax_dim=1)


def positions_mixed_into_the_vector(votes: Tensor, iterations: int = 3) -> Tensor:
    B, I, J, D = votes.shape
    mixed = votes.permute(0, 2, 3, 1).reshape(B, I, J, D)  # reshape where permute(0, 1, 2, 3) is needed
    return _loop(mixed, iterations)


def logits_shared_over_the_batch(votes: Tensor, iterations: int = 3) -> Tensor:
    logits = votes.new_zeros(votes.shape[1:3])
    for _ in range(iterations):
        coefficients = logits.softmax(dim=1)
        capsules = squash(torch.einsum("ij,bijd->bjd", coefficients, votes))
        logits = logits + torch.einsum("bijd,bjd->bij", votes, capsules).mean(dim=0)
    return capsules


def squash_over_the_wrong_axis(votes: Tensor, iterations: int = 3) -> Tensor:
    logits = votes.new_zeros(votes.shape[:3])
    for _ in range(iterations):
        coefficients = logits.softmax(dim=2)
        capsules = squash(torch.einsum("bij,bijd->bjd", coefficients, votes), dim=1)
        logits = logits + torch.einsum("bijd,bjd->bij", votes, capsules)
    return capsules


def detached_update_called_full_gradient(votes: Tensor, iterations: int = 3) -> Tensor:
    return _loop(votes, iterations, inner=votes.detach())
