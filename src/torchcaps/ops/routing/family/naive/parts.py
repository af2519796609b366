"""The few pieces that the loops share: sums, softmax and squash of lists, in float64."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["Rows", "dot", "softmax", "squash", "to_rows", "total"]

Rows = list[list[Tensor]]
"""``rows[i][j]``: a vote ``[B, D]``, or a number ``[B]``, of child i for parent j."""


def to_rows(votes: Tensor) -> Rows:
    """Votes ``[B, I, J, D]`` as float64 lists."""
    return [[votes[:, i, j].double() for j in range(votes.shape[2])] for i in range(votes.shape[1])]


def total(terms: list[Tensor]) -> Tensor:
    """Sum of a list that is not empty."""
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def dot(a: Tensor, b: Tensor) -> Tensor:
    """``[B, D]`` · ``[B, D]`` → ``[B]``."""
    return (a * b).sum(dim=1)


def softmax(logits: list[Tensor]) -> list[Tensor]:
    """Numbers ``[B]`` that sum to 1 over the list."""
    highest = torch.stack(logits).amax(dim=0).detach()
    exponentials = [(logit - highest).exp() for logit in logits]
    return [e / total(exponentials) for e in exponentials]


def squash(s: Tensor, kind: str) -> Tensor:
    """``[B, D]`` with the length that ``kind`` names; a zero vector stays zero."""
    if kind == "none":
        return s
    squared = dot(s, s).unsqueeze(1)
    norm = torch.where(squared > 0, squared, 1.0).sqrt()
    length = {
        "paper": squared / (1 + squared),
        "half": squared / (0.5 + squared),
        "exponential": 1 - math.e ** (-norm),
        "unit": torch.ones_like(norm),
    }[kind]
    return torch.where(squared > 0, length * s / norm, 0.0 * s)
