"""From the vector of one class back to a picture."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import init

from torchcaps.nn.masking import mask_classes
from torchcaps.nn.start_values import BIAS_START, CAPSULE_STD, truncated_normal_

__all__ = ["ConvReconstructionDecoder", "ReconstructionDecoder"]


class ReconstructionDecoder(nn.Module):
    """The fully connected decoder of the paper: masked capsules → 512 → 1024 → picture in [0, 1].

    Args:
        num_classes, capsule_dim: J and D of the class capsules.
        image_shape: channels, height and width of the picture.
        hidden: widths of the ReLU layers.

    Shape:
        capsules ``[B, J, D]``, classes ``[B]``, ``[B, K]`` or bool ``[B, J]`` → ``[B, C, H, W]``.
    """

    def __init__(
        self,
        num_classes: int,
        capsule_dim: int,
        image_shape: tuple[int, int, int],
        hidden: Sequence[int] = (512, 1024),
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        widths = [num_classes * capsule_dim, *hidden, math.prod(image_shape)]
        self.layers = nn.ModuleList(
            nn.Linear(before, after, device=device, dtype=dtype) for before, after in itertools.pairwise(widths)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start values of the authors' code."""
        for layer in self.layers:
            truncated_normal_(layer.weight, CAPSULE_STD)  # type: ignore[arg-type]
            init.constant_(layer.bias, BIAS_START)  # type: ignore[arg-type]

    def forward(self, capsules: Tensor, classes: Tensor) -> Tensor:
        x = mask_classes(capsules, classes).flatten(1)
        *hidden, last = self.layers
        for layer in hidden:
            x = layer(x).relu()
        C, H, W = self.image_shape
        return rearrange(last(x).sigmoid(), "b (c h w) -> b c h w", c=C, h=H, w=W)


class ConvReconstructionDecoder(nn.Module):
    """A decoder for larger pictures: its weights do not grow with their area.

    A linear layer makes a map of about 8×8 cells, which is doubled in size and convolved until it covers the picture.

    Shape:
        as :class:`ReconstructionDecoder`.
    """

    def __init__(
        self,
        num_classes: int,
        capsule_dim: int,
        image_shape: tuple[int, int, int],
        channels: int = 128,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.image_shape = image_shape
        C, H, W = image_shape
        doublings = max(1, math.ceil(math.log2(max(H, W) / 8)))
        self.start_shape = (channels, math.ceil(H / 2**doublings), math.ceil(W / 2**doublings))
        self.linear = nn.Linear(num_classes * capsule_dim, math.prod(self.start_shape), device=device, dtype=dtype)
        widths = [max(16, channels // 2**step) for step in range(doublings + 1)]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(before, after, 3, padding=1, device=device, dtype=dtype)
            for before, after in itertools.pairwise(widths)
        )
        self.picture = nn.Conv2d(widths[-1], C, 3, padding=1, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """PyTorch's start values: the authors have no such decoder."""
        for layer in (self.linear, *self.convolutions, self.picture):
            layer.reset_parameters()

    def forward(self, capsules: Tensor, classes: Tensor) -> Tensor:
        C, H, W = self.start_shape
        x = self.linear(mask_classes(capsules, classes).flatten(1)).relu()
        x = rearrange(x, "b (c h w) -> b c h w", c=C, h=H, w=W)
        for convolution in self.convolutions:
            x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
            x = convolution(x).relu()
        _, height, width = self.image_shape
        return self.picture(x)[:, :, :height, :width].sigmoid()
