"""Convolutions that leave a GPU's usual algorithms idle: few input channels, or a kernel as large as the map."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.ops.precision import product_dtype

__all__ = ["PictureConv2d", "WholeMapConv2d"]


class PictureConv2d(nn.Conv2d):
    """``nn.Conv2d`` for few input channels; the same parameters, the same result.

    On CUDA it is one matrix product of patches and kernels: a 9×9 kernel on one channel has 81 numbers, too few for
    the channel-wise tiles of convolution libraries. The result comes channels-last, as the next layer wants it.
    """

    MOST_CHANNELS = 3

    def forward(self, images: Tensor) -> Tensor:
        if images.is_cuda and self.in_channels <= self.MOST_CHANNELS and self._is_plain:
            return self.as_product(images)
        return super().forward(images)

    @property
    def _is_plain(self) -> bool:
        return self.groups == 1 and self.dilation == (1, 1) and self.padding_mode == "zeros"

    def as_product(self, images: Tensor) -> Tensor:
        """The convolution as a matrix product; K is padded to a multiple of 8, which matrix units ask for."""
        images, weight, bias = self._in_matrix_precision(images)
        images = F.pad(images, self._borders())
        (kernel_height, kernel_width), (down, right) = self.kernel_size, self.stride
        windows = images.unfold(2, kernel_height, down).unfold(3, kernel_width, right)  # [B, C, H, W, kH, kW]
        B, _, H, W = windows.shape[:4]
        patches = windows.permute(0, 2, 3, 1, 4, 5).reshape(B * H * W, -1)
        unused = -patches.shape[1] % 8
        kernels = F.pad(weight.flatten(1), (0, unused))
        patches = F.pad(patches, (0, unused))
        maps = patches @ kernels.T if bias is None else torch.addmm(bias, patches, kernels.T)
        return maps.view(B, H, W, self.out_channels).permute(0, 3, 1, 2)

    def _borders(self) -> tuple[int, int, int, int]:
        """Zeros to the left, to the right, above and below."""
        if isinstance(self.padding, str):
            sides = [((k - 1) // 2, k // 2) if self.padding == "same" else (0, 0) for k in self.kernel_size]
        else:
            sides = [(zeros, zeros) for zeros in self.padding]
        (above, below), (left, right) = sides
        return left, right, above, below

    def _in_matrix_precision(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """What autocast does for a product, done before the patches multiply the bytes."""
        dtype = product_dtype(self.weight, self.weight)  # pictures follow the weight
        return images.to(dtype), self.weight.to(dtype), None if self.bias is None else self.bias.to(dtype)


class WholeMapConv2d(nn.Conv2d):
    """A depthwise convolution whose kernel is as large as the map: one weighted sum over all positions a channel.

    Shape:
        ``[B, C, H, W]`` → ``[B, C, 1, 1]``.
    """

    def __init__(self, channels: int, size: tuple[int, int]) -> None:
        super().__init__(channels, channels, size, groups=channels)

    def forward(self, maps: Tensor) -> Tensor:
        assert self.bias is not None
        sums = (maps * self.weight.squeeze(1)).sum(dim=(2, 3), dtype=torch.promote_types(maps.dtype, torch.float32))
        return (sums + self.bias)[..., None, None]
