"""Routings by agreement as loops: fixed point, normalised, max–min, attention, average, self-attention."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchcaps.ops.routing.family.naive.parts import dot, softmax, squash, to_rows, total

__all__ = ["attention", "average", "fixed_point", "max_min", "normalized", "self_attention"]


def fixed_point(votes: Tensor, iterations: int, bias: Tensor, kind: str) -> Tensor:
    rows = to_rows(votes)
    children, parents = range(votes.shape[1]), range(votes.shape[2])
    zero = torch.zeros(len(votes), dtype=torch.float64)
    logits = [[zero for _ in parents] for _ in children]
    for _ in range(iterations):
        c = [softmax(logits[i]) for i in children]
        v = [squash(total([c[i][j][:, None] * rows[i][j] for i in children]) + bias[j], kind) for j in parents]
        logits = [[dot(rows[i][j], v[j]) for j in parents] for i in children]
    return torch.stack(v, dim=1)


def normalized(votes: Tensor, iterations: int, bias: Tensor, kind: str) -> Tensor:
    rows = to_rows(votes)
    children, parents = range(votes.shape[1]), range(votes.shape[2])
    zero = torch.zeros(len(votes), dtype=torch.float64)
    logits = [[zero for _ in parents] for _ in children]
    for _ in range(iterations):
        c = [softmax(logits[i]) for i in children]
        s = [total([c[i][j][:, None] * rows[i][j] for i in children]) + bias[j] for j in parents]
        logits = [[dot(rows[i][j], squash(s[j], "unit")) for j in parents] for i in children]
    return torch.stack([squash(s_j, kind) for s_j in s], dim=1)


def max_min(votes: Tensor, iterations: int, lower: float, upper: float, bias: Tensor, kind: str) -> Tensor:
    rows = to_rows(votes)
    children, parents = range(votes.shape[1]), range(votes.shape[2])
    zero = torch.zeros(len(votes), dtype=torch.float64)
    logits = [[zero for _ in parents] for _ in children]
    for iteration in range(iterations):
        c = []
        for i in children:
            if iteration == 0 or len(parents) == 1:
                c.append([zero + upper for _ in parents])
                continue
            lowest = torch.stack(logits[i]).min(dim=0).values
            highest = torch.stack(logits[i]).max(dim=0).values
            c.append([lower + (upper - lower) * (b - lowest) / (highest - lowest) for b in logits[i]])
        v = [squash(total([c[i][j][:, None] * rows[i][j] for i in children]) + bias[j], kind) for j in parents]
        logits = [[logits[i][j] + dot(rows[i][j], v[j]) for j in parents] for i in children]
    return torch.stack(v, dim=1)


def attention(votes: Tensor, iterations: int, bias: Tensor, kind: str) -> Tensor:
    rows = to_rows(votes)
    _, I, J, D = votes.shape
    q: list[Tensor] = [torch.zeros(len(votes), D, dtype=torch.float64) for _ in range(J)]
    for _ in range(iterations):
        for j in range(J):
            c = softmax([dot(rows[i][j], q[j]) / math.sqrt(D) for i in range(I)])
            q[j] = total([c[i][:, None] * rows[i][j] for i in range(I)]) + bias[j]
    return torch.stack([squash(q_j, kind) for q_j in q], dim=1)


def average(votes: Tensor, bias: Tensor, kind: str) -> Tensor:
    rows = to_rows(votes)
    I, J = votes.shape[1:3]
    sums = [total([rows[i][j] / J for i in range(I)]) + bias[j] for j in range(J)]
    return torch.stack([squash(s, kind) for s in sums], dim=1)


def self_attention(votes: Tensor, priors: Tensor, kind: str) -> Tensor:
    rows = to_rows(votes)
    _, I, J, D = votes.shape
    c = []
    for i in range(I):
        agreement = [total([dot(rows[i][j], rows[k][j]) for k in range(I)]) / math.sqrt(D) for j in range(J)]
        c.append([share + priors[i, j] for j, share in enumerate(softmax(agreement))])
    sums = [total([c[i][j][:, None] * rows[i][j] for i in range(I)]) for j in range(J)]
    return torch.stack([squash(s, kind) for s in sums], dim=1)
