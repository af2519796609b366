"""Sharpness-aware minimisation: gradients taken a little uphill lead to flat minima, which often generalise better.

P. Foret, A. Kleiner, H. Mobahi, B. Neyshabur: Sharpness-Aware Minimization for Efficiently Improving Generalization,
2021.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

__all__ = ["uphill"]

LEAST_NORM = 1e-12


@contextmanager
def uphill(parameters: Sequence[Tensor], distance: float) -> Iterator[None]:
    """Inside, the parameters stand ``distance`` away in the direction of their gradients; after it, where they stood.

    Device work only, so a step with it can be captured.
    """
    moved, gradients = [], []
    for parameter in parameters:
        if parameter.grad is not None:
            moved.append(parameter)
            gradients.append(parameter.grad)
    with torch.no_grad():
        here = [parameter.clone() for parameter in moved]
        norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
        way = torch._foreach_mul(gradients, distance / (norm + LEAST_NORM))
        torch._foreach_add_(moved, list(way))
    try:
        yield
    finally:
        with torch.no_grad():
            torch._foreach_copy_(moved, here)
