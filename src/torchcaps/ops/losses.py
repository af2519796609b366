"""Eq. 4, the spread loss and the reconstruction term."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.precision import at_least_float32

__all__ = ["margin_loss", "multi_hot", "reconstruction_loss", "spread_loss"]


def margin_loss(
    lengths: Tensor,
    targets: Tensor,
    *,
    positive: float = 0.9,
    negative: float = 0.1,
    down_weight: float = 0.5,
    reduction: str = "mean",
) -> Tensor:
    r"""Margin loss (Eq. 4), summed over the classes; several classes may be present at once.

    .. math:: L_k = T_k \max(0, m^+ - \|v_k\|)^2 + \lambda (1 - T_k) \max(0, \|v_k\| - m^-)^2

    Args:
        positive, negative, down_weight: m⁺, m⁻ and λ of the paper.
        reduction: ``"mean"`` or ``"sum"`` over the batch, or ``"none"`` for one loss an example.

    Shape:
        lengths: ``[B, J]``. targets: class numbers ``[B]``, or multi-hot ``[B, J]`` of any dtype.
            Two dimensions always mean multi-hot; several class numbers an example, ``[B, K]``, go through
            :func:`multi_hot` first, since for K = J nothing would tell the two apart.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.margin_loss(torch.tensor([[0.9, 0.1, 0.1]]), torch.tensor([0])).item()
        0.0
    """
    lengths, present = _scores_and_truth(lengths, targets)
    missed = (positive - lengths).clamp(min=0).square()
    invented = (lengths - negative).clamp(min=0).square()
    loss = (present * missed + down_weight * (1 - present) * invented).sum(dim=1)
    return _reduce(loss, reduction)


def spread_loss(
    activations: Tensor, targets: Tensor, *, margin: float | Tensor = 0.9, reduction: str = "mean"
) -> Tensor:
    r"""Spread loss (Hinton, Sabour, Frosst 2018): the true class must lead every other one by the margin m.

    .. math:: L = \sum_{i \ne t} \max\big(0,\ m - (a_t - a_i)\big)^2

    The paper raises m from 0.2 to 0.9 in the course of training; a tensor without dimensions can be changed between
    the steps of a captured graph. Where several classes are present, each of them
    must lead each absent one.

    Shape:
        activations: ``[B, J]``. targets: class numbers ``[B]``, or multi-hot ``[B, J]`` of any dtype.
            Two dimensions always mean multi-hot; several class numbers an example, ``[B, K]``, go through
            :func:`multi_hot` first, since for K = J nothing would tell the two apart.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.spread_loss(torch.tensor([[0.95, 0.05, 0.0]]), torch.tensor([0])).item()
        0.0
    """
    activations, present = _scores_and_truth(activations, targets)
    lead = activations.unsqueeze(2) - activations.unsqueeze(1)  # [B, true class, other class]
    counts = present.unsqueeze(2) * (1 - present).unsqueeze(1)
    return _reduce((counts * (margin - lead).clamp(min=0).square()).sum(dim=(1, 2)), reduction)


def reconstruction_loss(
    reconstruction: Tensor, images: Tensor, *, scale: float = 0.0005, reduction: str = "mean"
) -> Tensor:
    """Sum of squared pixel differences times ``scale``: a sum over the picture, never a mean.

    Shape:
        reconstruction, images: ``[B, C, H, W]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.reconstruction_loss(torch.zeros(2, 1, 28, 28), torch.ones(2, 1, 28, 28)).item()  # 784 · 0.0005
        0.392...
    """
    if reconstruction.shape != images.shape:
        raise ValueError(
            f"a reconstruction of shape {list(reconstruction.shape)} cannot be compared with images of shape "
            f"{list(images.shape)}; both must be [B, C, H, W]"
        )
    difference = at_least_float32(reconstruction) - at_least_float32(images)
    return _reduce(scale * difference.square().flatten(1).sum(dim=1), reduction)


def multi_hot(targets: Tensor, num_classes: int) -> Tensor:
    """Turn class numbers, one ``[B]`` or several ``[B, K]`` for each example, into ``[B, J]`` of zeros and ones."""
    if targets.dtype == torch.bool or targets.is_floating_point() or targets.ndim not in (1, 2):
        raise TypeError(
            f"class numbers must be integers [B] or [B, K], got {targets.dtype} {list(targets.shape)}; "
            "a tensor that is multi-hot already needs no conversion"
        )
    index = (targets if targets.ndim == 2 else targets.unsqueeze(1)).long()
    try:  # not in place, which torch.func could not batch
        return torch.zeros(index.shape[0], num_classes, device=targets.device).scatter(1, index, 1.0)
    except RuntimeError as error:  # on a CPU, which looks; elsewhere a look would wait for the device
        raise ValueError(
            f"class numbers run from {int(index.min())} to {int(index.max())}, but must lie in 0 … {num_classes - 1} "
            f"for {num_classes} classes"
        ) from error


def _scores_and_truth(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Both ``[B, J]`` and in the same type, at least float32."""
    if scores.ndim != 2:
        raise ValueError(
            f"lengths or activations must be [B, J], got {list(scores.shape)}; ops.capsule_lengths makes them from "
            "capsules"
        )
    scores = at_least_float32(scores)
    present = (targets if targets.ndim == 2 else multi_hot(targets, scores.shape[1])).to(scores.dtype)
    if present.shape != scores.shape:
        raise ValueError(
            f"scores {list(scores.shape)} need as many targets, got {list(present.shape)}; several class numbers an "
            "example go through ops.multi_hot first"
        )
    return scores, present


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return loss.mean() if loss.shape[0] else loss.sum()  # an empty batch has loss 0, not NaN
    if reduction == "sum":
        return loss.sum()
    if reduction == "none":
        return loss
    raise ValueError(f"unknown reduction {reduction!r}; choose 'mean', 'sum' or 'none'")
