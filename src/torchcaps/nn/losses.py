"""The losses as modules, with the two balances that decide what the decoder is worth."""

from __future__ import annotations

from typing import NamedTuple

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

    Args:
        margin: by how much the true class must lead. The paper raises it from 0.2 to 0.9 while it trains; in a loop
            of your own, set ``loss.margin = loss.margin_at(step / steps)``.
        reconstruction_scale: factor on the sum of squared pixel differences.
    """

    def __init__(self, margin: float = 0.9, reconstruction_scale: float = 0.0005) -> None:
        super().__init__(reconstruction_scale)
        self.margin = margin

    def class_loss(self, lengths: Tensor, targets: Tensor) -> Tensor:
        return ops.spread_loss(lengths, targets, margin=self.margin)

    @staticmethod
    def margin_at(progress: float) -> float:
        """The paper's margin after this share of the training, from 0.2 to 0.9."""
        return 0.2 + 0.7 * min(1.0, max(0.0, progress))

    def extra_repr(self) -> str:
        return f"margin={self.margin}, reconstruction_scale={self.reconstruction_scale}"
