"""The kernels as custom ops with shape-only twins and a gradient, so that compiled and captured steps can hold them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.routing.triton.launch import Centre, Saved, route, route_backward

__all__ = ["capsule_linear"]


def capsule_linear(u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions) -> Tensor:
    """``u`` ``[B, I, P]``, ``weight`` ``[I, J, D, P]`` or ``[J, D, P]`` of the same dtype → capsules ``[B, J, D]``.

    float32 products are exact unless ``torch.set_float32_matmul_precision`` allows tf32. The result is the same
    from run to run: every sum is taken in a fixed order, by one program, without atomic operations.
    """
    alone = weight.shape[-3] == 1 and not options.leaky  # a single parent gets every vote in every iteration
    iterations = 1 if alone else options.iterations
    adds_up, sharpness = options.centre == "sum", options.sharpness if options.centre == "direction" else None
    capsules, *_ = _route(u, weight, bias, iterations, options.leaky, options.gradient == "all", adds_up, sharpness)
    return capsules


def _tf32() -> bool:
    return torch.get_float32_matmul_precision() != "highest"


@torch.library.custom_op(
    "torchcaps::route",
    mutates_args=(),
    schema="(Tensor u, Tensor weight, Tensor? bias, int iterations, bool leaky, bool all_iterations, bool adds_up,"
    " float? sharpness) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _route(
    u: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    iterations: int,
    leaky: bool,
    all_iterations: bool,
    adds_up: bool,
    sharpness: float | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    bias = None if bias is None else bias.contiguous()
    centre = Centre(adds_up, sharpness)
    capsules, saved = route(u.contiguous(), weight.contiguous(), bias, iterations, leaky, _tf32(), centre=centre)
    return capsules, *saved


@_route.register_fake
def _route_shapes(
    u: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    iterations: int,
    leaky: bool,
    all_iterations: bool,
    adds_up: bool,
    sharpness: float | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    (B, I, _), (J, D) = u.shape, weight.shape[-3:-1]
    return (
        u.new_empty(B, J, D),
        u.new_empty(iterations, B, J, D, dtype=torch.float32),
        u.new_empty(iterations - 1, B, J, D, dtype=torch.float32),
        u.new_empty(iterations - 1, B, 2, I, dtype=torch.float32),
    )


@torch.library.custom_op(
    "torchcaps::route_backward",
    mutates_args=(),
    schema="(Tensor u, Tensor weight, Tensor sums, Tensor agreed, Tensor normalisers, Tensor grad_capsules,"
    " bool leaky, bool all_iterations, bool adds_up, float? sharpness) -> (Tensor, Tensor, Tensor)",
)
def _route_backward(
    u: Tensor,
    weight: Tensor,
    sums: Tensor,
    agreed: Tensor,
    normalisers: Tensor,
    grad_capsules: Tensor,
    leaky: bool,
    all_iterations: bool,
    adds_up: bool,
    sharpness: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    saved = Saved(sums, agreed, normalisers)
    u, weight, grad_capsules = u.contiguous(), weight.contiguous(), grad_capsules.contiguous()
    centre = Centre(adds_up, sharpness)
    return route_backward(u, weight, saved, grad_capsules, leaky, all_iterations, _tf32(), centre=centre)


@_route_backward.register_fake
def _route_backward_shapes(
    u: Tensor,
    weight: Tensor,
    sums: Tensor,
    agreed: Tensor,
    normalisers: Tensor,
    grad_capsules: Tensor,
    leaky: bool,
    all_iterations: bool,
    adds_up: bool,
    sharpness: float | None,
) -> tuple[Tensor, Tensor, Tensor]:
    return u.new_empty(u.shape), weight.new_empty(weight.shape), sums.new_empty(sums.shape[2:])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    u, weight, bias, _, *flags = inputs
    _, *saved = output
    ctx.mark_non_differentiable(*saved)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(u, weight, *saved)
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.flags = flags


def _gradients(ctx: Any, grad_capsules: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    if grad_capsules is None:
        return (None,) * 8
    grad_u, grad_weight, grad_bias = _route_backward(*ctx.saved_tensors, grad_capsules, *ctx.flags)
    return grad_u, grad_weight, None if ctx.bias_dtype is None else grad_bias.to(ctx.bias_dtype), *(None,) * 5


_route.register_autograd(_gradients, setup_context=_remember)
