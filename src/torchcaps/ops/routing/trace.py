"""What happened inside a routing, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["RoutingTrace", "child_entropy"]


@dataclass(frozen=True)
class RoutingTrace:
    """Internals of a routing; gradients flow through every field.

    Shape:
        logits: ``[R, B, I, J]``, the ``b_ij`` that the coefficients of this iteration were made from.
        coefficients: ``[R, B, I, J]``, the ``c_ij``; they sum to 1 over the parents j
            (to less when leaky, to 0 where masked).
        outputs: ``[R, B, J, D]``, the capsules after each iteration; the last is the result.
        activations: ``[R, B, J]`` for the routings whose capsules are not squashed, else ``None``.
    """

    logits: Tensor
    coefficients: Tensor
    outputs: Tensor
    activations: Tensor | None = None

    @property
    def iterations(self) -> int:
        return len(self.outputs)

    def entropy(self) -> Tensor:
        """Mean entropy of the shares of a child in nats, ``[R, B]``: ln J when every parent is equal, 0 for a tree.

        The shares are the coefficients by size, divided by their sum over the parents, so that they sum to 1 in every
        routing. Each child counts equally; a masked child counts as 0.
        """
        return child_entropy(self.coefficients).mean(-1)


def child_entropy(coefficients: Tensor) -> Tensor:
    """Entropy in nats of the shares of every child, ``[…, I, J]`` → ``[…, I]``; 0 for a child that serves nobody."""
    tiny = torch.finfo(coefficients.dtype).tiny  # 0·ln 0 is 0, and so is its gradient
    sizes = coefficients.abs()
    totals = sizes.sum(-1, keepdim=True)
    shares = sizes / torch.where(totals > 0, totals, 1.0)
    return -(shares * shares.clamp(min=tiny).log()).sum(-1)
