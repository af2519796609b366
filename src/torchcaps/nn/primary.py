"""The first capsule layer: a convolution whose channels are grouped into vectors."""

from __future__ import annotations

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import init

from torchcaps import ops
from torchcaps.nn.start_values import BIAS_START, CAPSULE_STD, truncated_normal_
from torchcaps.ops.convolution import strided_convolution

__all__ = ["PrimaryCapsules"]


class PrimaryCapsules(nn.Module):
    """Convolution, then squash over the channels of one type at one position.

    A capsule is the ``dim`` neighbouring channels of one type at one position of the grid. The capsules are
    ordered by row, column and type, so that a channels-last convolution needs no copy.

    Args:
        in_channels: channels of the feature map.
        types: kinds of capsules, 32 in the paper.
        dim: dimensions of a capsule, 8 in the paper.
        kernel_size, stride, padding: of the convolution; ``"valid"`` pads nothing, ``"same"`` makes
            ⌈size / stride⌉ positions, the odd pixel of padding below and to the right.
        scale: factor on the convolution before its bias; the authors' code has 1/32 there, the share that each
            of 32 types gets from one softmax over zero logits.

    Shape:
        ``[B, C, H, W]`` → ``[B, I, P]`` with ``I = rows · columns · types`` and ``P = dim``.
    """

    def __init__(
        self,
        in_channels: int,
        types: int = 32,
        dim: int = 8,
        kernel_size: int = 9,
        stride: int = 2,
        padding: str = "valid",
        scale: float = 1.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"in_channels": in_channels, "types": types, "dim": dim, "kernel_size": kernel_size, "stride": stride}
        for name, value in sizes.items():
            if value < 1:
                raise ValueError(f"PrimaryCapsules needs {name} ≥ 1, got {value}")
        if padding not in ("valid", "same"):
            raise ValueError(f"unknown padding {padding!r}; choose 'valid' or 'same'")
        self.types, self.dim, self.scale = types, dim, scale
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.weight = nn.Parameter(
            torch.empty(types * dim, in_channels, kernel_size, kernel_size, device=device, dtype=dtype)
        )
        self.bias = nn.Parameter(torch.empty(types * dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start values of the authors' code."""
        truncated_normal_(self.weight, CAPSULE_STD)
        init.constant_(self.bias, BIAS_START)

    def grid_shape(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of capsules for a feature map of this size."""
        top, bottom, left, right = *self._pad(height), *self._pad(width)
        height, width = height + top + bottom, width + left + right
        if min(height, width) < self.kernel_size:
            raise ValueError(
                f"a {height}×{width} feature map is too small for primary capsules with {self.kernel_size}×"
                f"{self.kernel_size} kernels; use larger pictures, smaller kernels or padding='same'"
            )
        return (height - self.kernel_size) // self.stride + 1, (width - self.kernel_size) // self.stride + 1

    def forward(self, features: Tensor) -> Tensor:
        if self.padding == "same":
            height, width = features.shape[2:]
            features = nn.functional.pad(features, (*self._pad(width), *self._pad(height)))
        if self.scale == 1.0:
            maps = strided_convolution(features, self.weight, self.bias, self.stride)
        else:  # the scale stands before the bias
            maps = strided_convolution(features, self.weight, None, self.stride)
            maps = maps * self.scale + self.bias[:, None, None].to(maps.dtype)
        return ops.squash(rearrange(maps, "b (t p) h w -> b (h w t) p", p=self.dim))

    def _pad(self, size: int) -> tuple[int, int]:
        if self.padding == "valid":
            return 0, 0
        positions = -(-size // self.stride)
        total = max(0, (positions - 1) * self.stride + self.kernel_size - size)
        return total // 2, total - total // 2

    def extra_repr(self) -> str:
        return (
            f"{self.weight.shape[1]}, types={self.types}, dim={self.dim}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding!r}, scale={self.scale:g}"
        )
