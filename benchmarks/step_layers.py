"""Interchangeable ways to compute the layers of CapsNet, for ``benchmarks.step_gpu``."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.textbook import textbook_capsules
from torchcaps import nn, ops
from torchcaps.ops.convolution.op import convolve

__all__ = ["CONVOLUTIONS", "PRIMARY_CONVOLUTIONS", "ROUTINGS"]


def _half(x: Tensor) -> Tensor:
    """What autocast would do for a matrix product."""
    return x.to(torch.get_autocast_dtype("cuda")) if torch.is_autocast_enabled("cuda") else x


def _cudnn(convolution: nn.PictureConv2d, images: Tensor) -> Tensor:
    images = images.contiguous(memory_format=torch.channels_last)
    return F.conv2d(images, convolution.weight, convolution.bias).relu()


def _as_product(convolution: nn.PictureConv2d, images: Tensor) -> Tensor:
    return convolution.as_product(images).relu()


def _primary_cudnn(features: Tensor, weight: Tensor) -> Tensor:
    return F.conv2d(features, weight, None, 2)


def _primary_space_to_depth(features: Tensor, weight: Tensor) -> Tensor:
    """Stride 2 on C channels is stride 1 on 4·C channels of half the size; an odd kernel gets a row of zeros."""
    B, C, H, W = features.shape
    deep = features.permute(0, 2, 3, 1).reshape(B, H // 2, 2, W // 2, 2, C)
    deep = deep.permute(0, 1, 3, 2, 4, 5).reshape(B, H // 2, W // 2, 4 * C).permute(0, 3, 1, 2)
    kernel = F.pad(_half(weight), (0, 1, 0, 1)).permute(0, 2, 3, 1)  # [out, 10, 10, C]
    out, size = kernel.shape[:2]
    kernel = kernel.reshape(out, size // 2, 2, size // 2, 2, C).permute(0, 1, 3, 2, 4, 5)
    kernel = kernel.reshape(out, size // 2, size // 2, 4 * C).permute(0, 3, 1, 2)
    return F.conv2d(deep, kernel)


def _primary_im2col(features: Tensor, weight: Tensor) -> Tensor:
    B, C = features.shape[:2]
    out, _, height, width = weight.shape
    windows = _half(features).permute(0, 2, 3, 1).unfold(1, height, 2).unfold(2, width, 2)  # [B, 6, 6, C, 9, 9]
    rows, columns = windows.shape[1:3]
    patches = windows.permute(0, 1, 2, 4, 5, 3).reshape(B * rows * columns, height * width * C)
    matrix = _half(weight).permute(0, 2, 3, 1).reshape(out, -1)
    return (patches @ matrix.T).view(B, rows, columns, out).permute(0, 3, 1, 2)


def _primary_triton(features: Tensor, weight: Tensor) -> Tensor:
    return convolve(_half(features), _half(weight), 2)


def _no_routing(u: Tensor, weight: Tensor, bias: Tensor, iterations: int) -> Tensor:
    J, D = bias.shape
    return u.flatten(1)[:, : J * D].reshape(-1, J, D)


def _with(backend: str) -> Callable[[Tensor, Tensor, Tensor, int], Tensor]:
    return lambda u, weight, bias, iterations: ops.capsule_linear(u, weight, iterations, bias, backend=backend)


CONVOLUTIONS = {"cudnn": _cudnn, "gemm": _as_product}
PRIMARY_CONVOLUTIONS = {
    "cudnn": _primary_cudnn,
    "space_to_depth": _primary_space_to_depth,
    "im2col": _primary_im2col,
    "triton": _primary_triton,
}
ROUTINGS = {
    "textbook": lambda u, weight, bias, iterations: textbook_capsules(u, weight, iterations),  # has no bias
    "eager": _with("eager"),
    "triton": _with("triton"),
    "none": _no_routing,
}
