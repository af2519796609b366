"""A convolution for pictures, whose one or three channels leave a GPU's usual algorithms idle."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torchcaps.ops.precision import autocast_dtype

__all__ = ["PictureConv2d"]


class PictureConv2d(nn.Conv2d):
    """``nn.Conv2d`` of stride 1 for few input channels; the same parameters, the same result.

    On CUDA it is one matrix product of patches and kernels: a 9×9 kernel on one channel has 81 numbers, too few for
    the channel-wise tiles of convolution libraries. The result comes channels-last, as the next layer wants it.
    """

    MOST_CHANNELS = 3

    def forward(self, images: Tensor) -> Tensor:
        if images.is_cuda and self.in_channels <= self.MOST_CHANNELS and self.stride == (1, 1):
            return self.as_product(images)
        return super().forward(images)

    def as_product(self, images: Tensor) -> Tensor:
        """The convolution as a matrix product; K is padded to a multiple of 8, which matrix units ask for."""
        images, weight, bias = self._in_matrix_precision(images)
        kernel_height, kernel_width = self.kernel_size
        if self.padding == "same":
            images = F.pad(images, _same_padding(kernel_width) + _same_padding(kernel_height))
        windows = images.unfold(2, kernel_height, 1).unfold(3, kernel_width, 1)  # [B, C, H, W, kH, kW]
        B, _, H, W = windows.shape[:4]
        patches = windows.permute(0, 2, 3, 1, 4, 5).reshape(B * H * W, -1)
        unused = -patches.shape[1] % 8
        kernels = F.pad(weight.flatten(1), (0, unused))
        maps = torch.addmm(bias, F.pad(patches, (0, unused)), kernels.T)
        return maps.view(B, H, W, self.out_channels).permute(0, 3, 1, 2)

    def _in_matrix_precision(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What autocast does for a product, done before the patches multiply the bytes."""
        assert self.bias is not None
        dtype = autocast_dtype(images.device.type) or self.weight.dtype
        return images.to(dtype), self.weight.to(dtype), self.bias.to(dtype)


def _same_padding(kernel: int) -> tuple[int, int]:
    return (kernel - 1) // 2, kernel // 2
