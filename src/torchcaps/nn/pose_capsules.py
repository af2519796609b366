"""Primary capsules with a pose and an activation of its own."""

from __future__ import annotations

import torch
from einops import rearrange
from torch import Tensor, nn

from torchcaps.ops import RoutingOutput
from torchcaps.ops.precision import at_least_float32

__all__ = ["PrimaryPoses"]


class PrimaryPoses(nn.Module):
    """The first capsule layer of EM networks: poses by a linear map of the features, activations by a sigmoid.

    Args:
        in_channels: channels of the feature map.
        types: kinds of capsules at each position, B of the paper.
        dim: of a pose; 16 is a 4×4 matrix.
        kernel_size: of the convolution, 1 in the paper.

    Shape:
        ``[B, C, H, W]`` → capsules ``[B, H', W', types, dim]`` and activations ``[B, H', W', types]``.
    """

    def __init__(
        self,
        in_channels: int,
        types: int = 8,
        dim: int = 16,
        kernel_size: int = 1,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.types, self.dim = types, dim
        # One convolution makes both: poses first, then the activations.
        self.maps = nn.Conv2d(in_channels, types * (dim + 1), kernel_size, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """PyTorch's start values."""
        self.maps.reset_parameters()

    def forward(self, features: Tensor) -> RoutingOutput:
        maps = self.maps(features)
        poses, scores = maps.split([self.types * self.dim, self.types], dim=1)
        capsules = rearrange(poses, "b (t d) h w -> b h w t d", d=self.dim)
        return RoutingOutput(capsules, rearrange(at_least_float32(scores).sigmoid(), "b t h w -> b h w t"))
