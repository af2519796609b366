"""Small convolutions in place of one large one: the same view of the picture, more layers to make sense of it."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import init
from torch.nn.utils import fuse_conv_bn_weights

from torchcaps.nn.convolution import PictureConv2d

__all__ = ["ConvolutionStem"]

KERNEL = 3


class ConvolutionStem(nn.Module):
    """3×3 convolutions, each normalised over the batch, with ReLUs between them; the last ReLU is the caller's.

    Four of them see 9×9 pixels and leave a map as large as one 9×9 convolution does, so that they fit in its place.

    Args:
        in_channels: channels of the pictures.
        channels: of each convolution; as many convolutions as numbers.
        padding: ``"valid"`` pads nothing, ``"same"`` keeps the size.
        dropout: chance that a channel between two convolutions is silent in a training step.

    Shape:
        ``[B, C, H, W]`` → ``[B, channels[-1], H − shrink, W − shrink]``.
    """

    def __init__(self, in_channels: int, channels: Sequence[int], padding: str = "valid", dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout
        if isinstance(channels, str) or not channels or any(not isinstance(c, int) or c < 1 for c in channels):
            raise ValueError(f"a stem is a list of channels, whole numbers of at least 1, got {channels!r}")
        self.shrink = 0 if padding == "same" else (KERNEL - 1) * len(channels)
        self.convolutions = nn.ModuleList()
        self.norms = nn.ModuleList()
        for width in channels:
            self.convolutions.append(PictureConv2d(in_channels, width, KERNEL, padding=padding))
            self.norms.append(nn.BatchNorm2d(width))
            in_channels = width
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """He's start values, which suit ReLUs."""
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            init.kaiming_normal_(convolution.weight)  # type: ignore[arg-type]
            init.zeros_(convolution.bias)  # type: ignore[arg-type]
            norm.reset_parameters()  # type: ignore[operator]

    def folded(self) -> list[tuple[Tensor, Tensor]]:
        """Kernel and bias of each convolution with the normalisation that follows it, as it is outside of training."""
        return [
            fuse_conv_bn_weights(
                convolution.weight,  # type: ignore[arg-type]
                convolution.bias,  # type: ignore[arg-type]
                norm.running_mean,  # type: ignore[arg-type]
                norm.running_var,  # type: ignore[arg-type]
                norm.eps,  # type: ignore[arg-type]
                norm.weight,  # type: ignore[arg-type]
                norm.bias,  # type: ignore[arg-type]
            )
            for convolution, norm in zip(self.convolutions, self.norms, strict=True)
        ]

    def forward(self, images: Tensor) -> Tensor:
        maps = images
        for place, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            if place:
                maps = nn.functional.dropout2d(maps.relu(), self.dropout, self.training)
            maps = norm(convolution(maps))
        return maps
