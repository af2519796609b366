"""Eq. 1, the non-linearity that turns the length of a vector into a probability, and its variants by name."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.precision import at_least_float32

__all__ = ["SQUASHES", "capsule_lengths", "check_squash", "squash"]

SQUASHES = {
    "paper": "‖s‖² / (1 + ‖s‖²), Eq. 1 of Sabour et al. 2017",
    "half": "‖s‖² / (0.5 + ‖s‖²), reaches half its length at a shorter input",
    "exponential": "1 − exp(−‖s‖), of Efficient-CapsNet (Mazzia et al. 2021); not flat at zero",
    "unit": "1: the direction alone",
    "none": "‖s‖: the vector as it is",
}
"""Names of the squash variants, each with the length that it gives to a vector s."""


def squash(x: Tensor, dim: int = -1, kind: str = "paper") -> Tensor:
    r"""Shrink a vector to a length below 1 and keep its direction (Eq. 1).

    .. math:: v = \frac{\|s\|^2}{1 + \|s\|^2} \frac{s}{\|s\|}

    There is no epsilon: the value and the gradient are zero at ``s = 0`` and finite for every finite input,
    since no square is ever formed outside the safe range. Half precision is computed in float32.

    Args:
        kind: another length for the result, a name of :data:`SQUASHES`. ``"exponential"`` and ``"unit"`` have no
            derivative at ``s = 0``; value and gradient are 0 there.

    Shape:
        x: any, capsules along ``dim``. Returns the same shape and dtype.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.squash(torch.tensor([3.0, 4.0])).norm()   # 25/26
        tensor(0.9615)
        >>> ops.squash(torch.tensor([3.0, 4.0]), kind="unit")
        tensor([0.6000, 0.8000])
    """
    if not x.is_floating_point():
        raise TypeError(f"squash needs floating point capsules, got {x.dtype}; call .float() on the input first")
    check_squash(kind)
    if kind == "none":
        return x
    s = at_least_float32(x)
    if kind == "unit":
        return _direction(s, dim).to(x.dtype)
    scale = _scale(s, dim)
    scaled = s / scale
    norm = torch.linalg.vector_norm(scaled, dim=dim, keepdim=True)
    if kind in ("paper", "half"):
        # With s = m·t, Eq. 1 reads t·‖t‖ / (1/m² + ‖t‖²): every term stays in range, and it holds for any m,
        # so m may be a constant for the gradient.
        half = 1.0 if kind == "paper" else 0.5
        return (scaled * (norm / (half * scale.square().reciprocal() + norm.square()))).to(x.dtype)
    nonzero = norm > torch.finfo(s.dtype).tiny  # below, one over the length overflows
    safe = torch.where(nonzero, norm, 1.0)
    return (torch.where(nonzero, -torch.expm1(-safe * scale) / safe, 0.0) * scaled).to(x.dtype)


def check_squash(kind: str) -> str:
    """The name itself, or an error that lists the names."""
    if kind not in SQUASHES:
        raise ValueError(f"unknown squash {kind!r}; choose from {', '.join(map(repr, SQUASHES))}")
    return kind


def capsule_lengths(capsules: Tensor, dim: int = -1) -> Tensor:
    """Length of each capsule, the probability that its entity is present; gradient 0 for a zero capsule.

    Shape:
        capsules: ``[..., D]``. Returns ``[...]``, float32 for half precision input.
    """
    s = at_least_float32(capsules)
    scale = _scale(s, dim)
    return (torch.linalg.vector_norm(s / scale, dim=dim, keepdim=True) * scale).squeeze(dim)


def _direction(s: Tensor, dim: int) -> Tensor:
    """Length 1. The gradient is one over the length: a vector so short that it would overflow counts as zero."""
    largest = _largest(s, dim)
    zero = largest <= torch.finfo(s.dtype).tiny / torch.finfo(s.dtype).eps
    scaled = s / torch.where(zero, 1.0, largest)
    norm = torch.linalg.vector_norm(scaled, dim=dim, keepdim=True)  # from 1 to √D
    return torch.where(zero, 0.0, scaled / torch.where(zero, 1.0, norm))


def _scale(s: Tensor, dim: int) -> Tensor:
    """The largest component, at least 1: divided by it, no square can overflow."""
    return _largest(s, dim).clamp(min=1)


def _largest(s: Tensor, dim: int) -> Tensor:
    if s.shape[dim] == 0:
        raise ValueError(f"a capsule needs at least one dimension, got shape {list(s.shape)} along dim {dim}")
    return s.detach().abs().amax(dim, keepdim=True)
