"""Looking into a routing function from outside: its coefficients can be read off its outputs."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.testing.subject import Subject

__all__ = ["orthogonal_votes", "recover_coefficients"]


def orthogonal_votes(B: int, I: int, J: int, generator: torch.Generator) -> Tensor:
    """Votes ``[B, I, J, I]`` in which each child speaks along an axis of its own, with a strength of its own."""
    strength = torch.rand(B, I, J, dtype=torch.float64, generator=generator) + 0.5
    return strength.unsqueeze(3) * torch.eye(I, dtype=torch.float64)[None, :, None, :]


def recover_coefficients(subject: Subject, votes: Tensor) -> Tensor:
    """The coefficients ``[B, I, J]`` that a routing gave to :func:`orthogonal_votes`.

    Eq. 1 can be undone: a capsule of length l came from a sum of length √(l / (1 − l)). Along the axis of child i
    that sum holds ``c_ij`` times the child's strength and nothing else.
    """
    capsules = subject(votes)  # [B, J, D = I]
    length = capsules.norm(dim=2, keepdim=True)
    sums = capsules / length * (length / (1 - length)).sqrt()
    strength = votes.diagonal(dim1=1, dim2=3)  # [B, J, I]
    return (sums / strength).transpose(1, 2)
