"""What all capsule networks share: class capsules, a decoder to choose, and a loss on lengths and drawings."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from torchcaps.models.base import Model
from torchcaps.models.output import CapsNetOutput
from torchcaps.nn import CapsNetLoss, CapsuleLoss, ConvReconstructionDecoder, ReconstructionDecoder

__all__ = ["CapsuleModel", "make_decoder"]


class CapsuleModel(Model):
    """Base of the capsule networks; a subclass sets ``decoder`` and implements ``forward``."""

    decoder: nn.Module | None

    def forward(self, images: Tensor, return_trace: bool = False) -> CapsNetOutput:
        raise NotImplementedError

    def reconstruct(self, capsules: Tensor, classes: Tensor) -> Tensor:
        """Draw what the capsules of these classes hold.

        Shape:
            capsules: ``[B, J, D]``. classes: ``[B]``, several at once ``[B, K]``, or bool ``[B, J]``.
            Returns ``[B, C, H, W]`` in [0, 1].
        """
        if self.decoder is None:
            raise ValueError("this network has no decoder; create it with decoder='fc' or 'conv'")
        return self.decoder(capsules, classes)

    def make_loss(self) -> CapsuleLoss:
        """The loss that belongs to the network: Eq. 4 and the reconstruction."""
        return CapsNetLoss()

    def training_outputs(self, images: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
        out = self(images)
        return (out.lengths,) if self.decoder is None else (out.lengths, self.reconstruct(out.capsules, classes))


def make_decoder(
    kind: str,
    num_classes: int,
    capsule_dim: int,
    image_shape: tuple[int, int, int],
    hidden: Sequence[int] = (512, 1024),
) -> nn.Module | None:
    """The decoder of this kind: ``"fc"`` (the paper's), ``"conv"`` (for larger pictures) or ``"none"``."""
    if kind == "fc":
        return ReconstructionDecoder(num_classes, capsule_dim, image_shape, hidden)
    if kind == "conv":
        return ConvReconstructionDecoder(num_classes, capsule_dim, image_shape)
    if kind == "none":
        return None
    raise ValueError(f"unknown decoder {kind!r}; choose 'fc', 'conv' or 'none'")
