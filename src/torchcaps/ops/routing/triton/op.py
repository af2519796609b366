"""The kernels as custom ops with shape-only twins and a gradient, so that compiled and captured steps can hold them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.routing.triton.launch import Saved, route, route_backward

__all__ = ["capsule_linear"]

# The fields of RoutingOptions, one by one, since an op takes plain values only.
OPTIONS = "int iterations, bool leaky, str gradient, str centre, float sharpness, bool squashed"


def capsule_linear(u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions) -> Tensor:
    """``u`` ``[B, I, P]``, ``weight`` ``[I, J, D, P]`` or ``[J, D, P]`` of the same dtype → capsules ``[B, J, D]``.

    float32 products are exact unless ``torch.set_float32_matmul_precision`` allows tf32. The result is the same
    from run to run: every sum is taken in a fixed order, by one program, without atomic operations.
    """
    alone = weight.shape[-3] == 1 and not options.leaky  # a single parent gets every vote in every iteration
    iterations = 1 if alone else options.iterations
    how = options.leaky, options.gradient, options.centre, options.sharpness, options.squashed
    capsules, *_ = _route(u, weight, bias, iterations, *how)
    return capsules


def _tf32() -> bool:
    return torch.get_float32_matmul_precision() != "highest"


@torch.library.custom_op(
    "torchcaps::route",
    mutates_args=(),
    schema=f"(Tensor u, Tensor weight, Tensor? bias, {OPTIONS}) -> (Tensor, Tensor, Tensor, Tensor)",
)
def _route(u: Tensor, weight: Tensor, bias: Tensor | None, *options: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    bias = None if bias is None else bias.contiguous()
    capsules, saved = route(u.contiguous(), weight.contiguous(), bias, RoutingOptions(*options), _tf32())
    return capsules, *saved


@_route.register_fake
def _route_shapes(
    u: Tensor, weight: Tensor, bias: Tensor | None, *values: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    (B, I, _), (J, D), options = u.shape, weight.shape[-3:-1], RoutingOptions(*values)
    return (
        u.new_empty(B, J, D, dtype=u.dtype if options.squashed else torch.float32),
        u.new_empty(options.iterations, B, J, D, dtype=torch.float32),
        u.new_empty(options.iterations - 1, B, J, D, dtype=torch.float32),
        u.new_empty(options.iterations - 1, B, 2, I, dtype=torch.float32),
    )


@torch.library.custom_op(
    "torchcaps::route_backward",
    mutates_args=(),
    schema="(Tensor u, Tensor weight, Tensor sums, Tensor agreed, Tensor normalisers, Tensor grad_capsules,"
    f" {OPTIONS}) -> (Tensor, Tensor, Tensor)",
)
def _route_backward(
    u: Tensor,
    weight: Tensor,
    sums: Tensor,
    agreed: Tensor,
    normalisers: Tensor,
    grad_capsules: Tensor,
    *options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    saved = Saved(sums, agreed, normalisers)
    u, weight, grad_capsules = u.contiguous(), weight.contiguous(), grad_capsules.contiguous()
    return route_backward(u, weight, saved, grad_capsules, RoutingOptions(*options), _tf32())


@_route_backward.register_fake
def _route_backward_shapes(
    u: Tensor,
    weight: Tensor,
    sums: Tensor,
    agreed: Tensor,
    normalisers: Tensor,
    grad_capsules: Tensor,
    *options: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    return u.new_empty(u.shape), weight.new_empty(weight.shape), sums.new_empty(sums.shape[2:])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    u, weight, bias, *options = inputs
    _, *saved = output
    ctx.mark_non_differentiable(*saved)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(u, weight, *saved)
    ctx.bias_dtype = None if bias is None else bias.dtype
    ctx.options = options


def _gradients(ctx: Any, grad_capsules: Tensor | None, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    rest = (None,) * len(ctx.options)
    if grad_capsules is None:
        return None, None, None, *rest
    grad_u, grad_weight, grad_bias = _route_backward(*ctx.saved_tensors, grad_capsules, *ctx.options)
    return grad_u, grad_weight, None if ctx.bias_dtype is None else grad_bias.to(ctx.bias_dtype), *rest


_route.register_autograd(_gradients, setup_context=_remember)
