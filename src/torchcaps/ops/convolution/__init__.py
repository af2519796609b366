"""A strided convolution that beats the library's on GPUs; why is in README.md of this folder.

Triton is imported when the kernels are first used, so the package works without it and starts quickly.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcaps.ops.convolution.support import supports
from torchcaps.ops.precision import product_dtype
from torchcaps.ops.routing.backends import forced_backend

__all__ = ["strided_convolution", "supports"]


def strided_convolution(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int = 1) -> Tensor:
    """``conv2d`` without padding, by the kernels of this folder on a GPU that can run them, else by PyTorch.

    It follows autocast as ``conv2d`` does. ``TORCHCAPS_BACKEND=eager`` forces plain PyTorch, here as for routing.

    Shape:
        x: ``[B, C, H, W]``. weight: ``[N, C, KH, KW]``. bias: ``[N]``. Returns ``[B, N, OH, OW]`` with
        ``OH = (H − KH) // stride + 1``, channels-last when it comes from the kernels.

    Example:
        >>> strided_convolution(torch.randn(2, 64, 20, 20), torch.randn(128, 64, 9, 9), stride=2).shape
        torch.Size([2, 128, 6, 6])
    """
    dtype = product_dtype(x, weight)
    if not (_wanted(x) and supports(x, weight, dtype)[0]):
        return F.conv2d(x, weight, bias, stride)
    from torchcaps.ops.convolution.op import convolve

    # Cast and layout in one pass, where a compiler can see them.
    maps = convolve(_channels_last(x, dtype), _channels_last(weight, dtype), stride)
    return maps if bias is None else maps + bias[:, None, None].to(dtype)


def _wanted(x: Tensor) -> bool:
    forced = forced_backend()
    return forced == "triton" or (forced == "auto" and x.is_cuda)


def _channels_last(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype, memory_format=torch.channels_last)
