"""The digamma function from elementary ones, which compilers fuse and ONNX has."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["digamma"]

SHIFT = 10  # from there on, six terms of the series are exact in float64


def digamma(x: Tensor) -> Tensor:
    r"""Derivative of ln Γ, for arguments of at least 1/2.

    .. math:: \psi(x) = \psi(x + n) - \sum_{k<n} \frac1{x + k},\qquad
              \psi(y) \approx \ln y - \frac1{2y} - \frac1{12 y^2} + \frac1{120 y^4} - \frac1{252 y^6} + \dots

    Example:
        >>> import torch
        >>> digamma(torch.tensor(1.0))  # minus Euler's constant
        tensor(-0.5772)
    """
    steps = torch.arange(SHIFT, dtype=x.dtype, device=x.device)
    y = x + SHIFT
    z = y.square().reciprocal()
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z / 132))))
    return y.log() - 0.5 / y - series - (x.unsqueeze(-1) + steps).reciprocal().sum(dim=-1)
