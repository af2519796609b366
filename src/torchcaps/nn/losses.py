"""The losses as modules, with the two balances that decide what the decoder is worth."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from torchcaps import ops

__all__ = ["CapsNetLoss", "CapsuleLoss", "LossTerms", "MarginLoss", "SpreadLoss"]


class MarginLoss(nn.Module):
    """Eq. 4, mean over the batch; see :func:`torchcaps.ops.margin_loss`."""

    def __init__(self, positive: float = 0.9, negative: float = 0.1, down_weight: float = 0.5) -> None:
        super().__init__()
        self.positive, self.negative, self.down_weight = positive, negative, down_weight

    def forward(self, lengths: Tensor, targets: Tensor) -> Tensor:
        return ops.margin_loss(
            lengths, targets, positive=self.positive, negative=self.negative, down_weight=self.down_weight
        )

    def extra_repr(self) -> str:
        return f"positive={self.positive}, negative={self.negative}, down_weight={self.down_weight}"


class LossTerms(NamedTuple):
    """What to minimise, and the two terms it is the sum of."""

    total: Tensor
    margin: Tensor
    reconstruction: Tensor | None


class CapsuleLoss(nn.Module):
    """What is trained by: a loss on the lengths of class capsules, plus one on what they draw.

    Args:
        reconstruction_scale: factor on the sum of squared pixel differences.

    Shape:
        lengths ``[B, J]``, targets ``[B]`` or multi-hot ``[B, J]``; reconstruction and images ``[B, C, H, W]``, or
        ``[B, K, C, H, W]`` when K things are drawn one by one, whose losses add up.
    """

    def __init__(self, reconstruction_scale: float = 0.0005) -> None:
        super().__init__()
        self.reconstruction_scale = reconstruction_scale

    def class_loss(self, lengths: Tensor, targets: Tensor) -> Tensor:
        """The term that tells the classes apart."""
        raise NotImplementedError

    def set_progress(self, progress: float) -> None:
        """Say which share of the training is over; only a loss that changes with it listens."""

    def forward(
        self, lengths: Tensor, targets: Tensor, reconstruction: Tensor | None = None, images: Tensor | None = None
    ) -> LossTerms:
        margin = self.class_loss(lengths, targets)
        if reconstruction is None:
            return LossTerms(margin, margin, None)
        if images is None:
            raise ValueError("a reconstruction needs the images that it should look like; pass images=")
        drawn = ops.reconstruction_loss(reconstruction, images, scale=self.reconstruction_scale)
        return LossTerms(margin + drawn, margin, drawn)


class CapsNetLoss(CapsuleLoss):
    """Margin loss plus reconstruction loss.

    Args:
        balance: ``"paper"`` sums the margin loss over the classes. ``"official"`` is the authors' code: each class
            counts half and the mean over batch and classes is taken, so the margin loss is 1/(2J) of Eq. 4 and the
            same decoder term weighs 20 times more for 10 classes.
        reconstruction_scale: factor on the sum of squared pixel differences.

    Shape:
        lengths ``[B, J]``, targets ``[B]`` or multi-hot ``[B, J]``; reconstruction and images ``[B, C, H, W]``, or
        ``[B, K, C, H, W]`` when K things are drawn one by one, whose losses add up.
    """

    def __init__(self, balance: str = "paper", reconstruction_scale: float = 0.0005) -> None:
        super().__init__(reconstruction_scale)
        if balance not in ("paper", "official"):
            raise ValueError(f"unknown loss balance {balance!r}; choose 'paper' or 'official'")
        self.balance = balance
        self.margin = MarginLoss()

    def class_loss(self, lengths: Tensor, targets: Tensor) -> Tensor:
        margin: Tensor = self.margin(lengths, targets)
        return margin * (0.5 / lengths.shape[1]) if self.balance == "official" else margin

    def extra_repr(self) -> str:
        return f"balance={self.balance!r}, reconstruction_scale={self.reconstruction_scale}"


class SpreadLoss(CapsuleLoss):
    """Spread loss, mean over the batch, plus reconstruction loss; see :func:`torchcaps.ops.spread_loss`.

    The margin in force is a tensor beside the weights, so that :meth:`set_progress` also reaches a step that was
    compiled or captured in a CUDA graph. It is the last one until progress is told.

    Args:
        margin: by how much the true class must lead in the end.
        start: and in the beginning; in between it grows linearly, in the paper from 0.2 to 0.9. ``None`` keeps
            ``margin`` throughout. ``fit`` tells the progress; in a loop of your own, call
            ``loss.set_progress(step / steps)`` before each step.
        reconstruction_scale: factor on the sum of squared pixel differences.

    Example:
        >>> from torchcaps import nn
        >>> loss = nn.SpreadLoss(start=0.2)
        >>> loss.set_progress(0.5)
        >>> loss.margin_now
        tensor(0.5500)
    """

    margin_now: Tensor

    def __init__(self, margin: float = 0.9, start: float | None = None, reconstruction_scale: float = 0.0005) -> None:
        super().__init__(reconstruction_scale)
        self.margin = margin
        self.start = margin if start is None else start
        if not 0 < self.start <= margin:
            raise ValueError(f"the margin must start above 0 and end no lower, got {self.start} and {margin}")
        self.register_buffer("margin_now", torch.tensor(float(margin)), persistent=False)

    def class_loss(self, lengths: Tensor, targets: Tensor) -> Tensor:
        return ops.spread_loss(lengths, targets, margin=self.margin_now)

    def margin_at(self, progress: float) -> float:
        """The margin after this share of the training, 0 to 1."""
        return self.start + (self.margin - self.start) * min(1.0, max(0.0, progress))

    def set_progress(self, progress: float) -> None:
        self.margin_now.fill_(self.margin_at(progress))

    def extra_repr(self) -> str:
        return f"margin={self.margin}, start={self.start}, reconstruction_scale={self.reconstruction_scale}"
