"""The kernels as custom ops with shape-only twins and gradients, so that compiled and captured steps can hold them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchcaps.ops.convolution import launch

__all__ = ["convolve", "data_gradient"]


@torch.library.custom_op(
    "torchcaps::strided_convolution", mutates_args=(), schema="(Tensor x, Tensor weight, int stride) -> Tensor"
)
def convolve(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    """``x`` ``[B, C, H, W]``, ``weight`` ``[N, C, KH, KW]`` of the same dtype → ``[B, N, OH, OW]``, channels-last.

    The sum is taken in float32 and in a fixed order: the same bits every time.
    """
    return launch.forward(_channels_last(x), _channels_last(weight), stride)


@convolve.register_fake
def _convolve_shape(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    sizes = launch.Sizes.of(x.shape[2], x.shape[3], weight, stride)
    return x.new_empty(x.shape[0], sizes.OH, sizes.OW, sizes.N).permute(0, 3, 1, 2)


@torch.library.custom_op(
    "torchcaps::strided_convolution_data_gradient",
    mutates_args=(),
    schema="(Tensor grad, Tensor weight, int stride, int height, int width) -> Tensor",
)
def data_gradient(grad: Tensor, weight: Tensor, stride: int, height: int, width: int) -> Tensor:
    """``grad`` ``[B, N, OH, OW]`` → the gradient of ``x`` ``[B, C, height, width]``, channels-last."""
    return launch.data_gradient(_channels_last(grad), _channels_last(weight), stride, height, width)


@data_gradient.register_fake
def _data_gradient_shape(grad: Tensor, weight: Tensor, stride: int, height: int, width: int) -> Tensor:
    return grad.new_empty(grad.shape[0], height, width, weight.shape[1]).permute(0, 3, 1, 2)


def _weight_gradient(grad: Tensor, x: Tensor, weight: Tensor, stride: int) -> Tensor:
    """The library's, which is fast: its sum goes over all positions of all examples."""
    places, only_weight = [stride, stride], [False, True, False]
    _, grad_weight, _ = torch.ops.aten.convolution_backward(
        _channels_last(grad), x, weight, None, places, [0, 0], [1, 1], False, [0, 0], 1, only_weight
    )
    return grad_weight


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    first, weight, stride, *_ = inputs
    ctx.save_for_backward(first, weight)
    ctx.stride = stride


def _gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    of_x, of_weight, *_ = ctx.needs_input_grad
    height, width = x.shape[2:]
    return (
        data_gradient(grad, weight, ctx.stride, height, width) if of_x else None,
        _weight_gradient(grad, x, weight, ctx.stride) if of_weight else None,
        None,
    )


def _second_gradients(ctx: Any, grad_of_gradient: Tensor) -> tuple[Tensor | None, ...]:
    """The data gradient is linear in both tensors, and its transpose is the convolution itself."""
    grad, weight = ctx.saved_tensors
    of_grad, of_weight, *_ = ctx.needs_input_grad
    return (
        convolve(grad_of_gradient, weight, ctx.stride) if of_grad else None,
        _weight_gradient(grad, grad_of_gradient, weight, ctx.stride) if of_weight else None,
        None,
        None,
        None,
    )


convolve.register_autograd(_gradients, setup_context=_remember)
data_gradient.register_autograd(_second_gradients, setup_context=_remember)


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)
