"""Votes and routing in one op that never holds all votes at once. The derivation is in README.md beside this file.

The votes are D times larger than anything else here. A few examples at a time they fit into the cache, are
routed there and thrown away; the backward pass forms them again, which costs less than reading them back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.checks import inside_transform
from torchcaps.ops.routing.loop import Iteration, centre_of, form_votes, iterate, output_of
from torchcaps.ops.routing.options import RoutingOptions

__all__ = ["capsule_linear", "sum_of_votes", "vote_buffer_bytes"]

VOTE_BYTES_AT_A_TIME = {
    "cpu": 8 << 20,
    "cuda": 1 << 30,
}  # CPU: about the cache of two cores; CUDA: few launches


def capsule_linear(u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions) -> Tensor:
    """``u`` ``[B, I, P]``, ``weight`` ``[I, J, D, P]`` or ``[J, D, P]`` → capsules ``[B, J, D]``."""
    if options.iterations == 1:
        return _one_pass(u, weight, bias, options)
    # The compiler fuses and differentiates the plain loop better than we could, and torch.func can see through it.
    if torch.compiler.is_compiling() or inside_transform():
        return _result(iterate(form_votes(u, weight), bias, options)[-1].outputs, u, options)
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (u, weight, bias)):
        return _CapsuleLinear.apply(u, weight, bias, options)
    return _route_in_parts(u, weight, bias, options)


def _result(capsules: Tensor, u: Tensor, options: RoutingOptions) -> Tensor:
    """Rounded to what came in, unless the squash is still to come."""
    return capsules.to(u.dtype) if options.squashed else capsules


def _one_pass(u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions) -> Tensor:
    """Every vote has the same share."""
    sums = sum_of_votes(u, weight) / (weight.shape[-3] + int(options.leaky))
    return _result(output_of(sums if bias is None else sums + bias.to(sums.dtype), options), u, options)


def sum_of_votes(u: Tensor, weight: Tensor, shares: Tensor | None = None) -> Tensor:
    """Σ_i c_ij W_ij u_i as one matrix product, without votes, in float32 at least: ``[B, J, D]``.

    ``shares`` ``[I, J]`` are coefficients that all examples have in common; without them they are 1.
    """
    wide = torch.float32 if u.dtype in (torch.float16, torch.bfloat16) else u.dtype
    children, transformations = u.to(wide), weight.to(wide)
    if weight.ndim == 4:
        if shares is not None:
            transformations = transformations * shares.to(wide)[:, :, None, None]
        return torch.einsum("bip,ijdp->bjd", children, transformations)
    if shares is None:
        return torch.einsum("bp,jdp->bjd", children.sum(dim=1), transformations)
    return torch.einsum("bjp,jdp->bjd", torch.einsum("bip,ij->bjp", children, shares.to(wide)), transformations)


def _route_in_parts(u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions) -> Tensor:
    parts = u.split(_examples_at_a_time(u, weight))
    capsules = [iterate(form_votes(part, weight), bias, options)[-1].outputs for part in parts]
    return _result(capsules[0] if len(capsules) == 1 else torch.cat(capsules), u, options)


class _CapsuleLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions) -> Tensor:
        ctx.save_for_backward(u, weight, bias)
        ctx.options = options
        return _route_in_parts(u, weight, bias, options)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        u, weight, bias = ctx.saved_tensors
        # With create_graph=True higher derivatives come from the plain loop.
        backward = _differentiable_backward if torch.is_grad_enabled() else _backward_in_parts
        return *backward(grad_output, u, weight, bias, ctx.options), None


Gradients = tuple[Tensor | None, Tensor | None, Tensor | None]  # of u, weight and bias


@without_autocast  # which may be on around the backward pass, too
def _backward_in_parts(
    grad_output: Tensor, u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions
) -> Gradients:
    at_a_time = _examples_at_a_time(u, weight)
    wide = torch.float32 if u.dtype in (torch.float16, torch.bfloat16) else u.dtype
    grad_u = torch.empty_like(u)
    # Contiguous whatever the weight is: the products below write to views of it.
    grad_weight = torch.zeros(weight.shape, dtype=wide, device=weight.device)
    grad_bias = None if bias is None else torch.zeros_like(bias, dtype=wide)
    for start in range(0, len(u), at_a_time):
        part = u[start : start + at_a_time]
        votes = form_votes(part, weight)
        grad_votes, grad_sums = _route_backward(
            votes.to(wide),
            iterate(votes, bias, options),
            grad_output[start : start + at_a_time].to(wide),
            options,
        )
        grad_u[start : start + at_a_time] = _add_vote_gradients(grad_votes, part, weight, grad_weight)
        if grad_bias is not None:
            grad_bias += grad_sums.sum(dim=0)
    return grad_u, grad_weight, grad_bias  # autograd casts them to what the arguments are


@without_autocast
def _differentiable_backward(
    grad_output: Tensor, u: Tensor, weight: Tensor, bias: Tensor | None, options: RoutingOptions
) -> Gradients:
    # Views of the arguments: of the arguments themselves one may depend on another, such as u on weights that are used
    # twice, and that path is not ours to count.
    u, weight, bias = u.view_as(u), weight.view_as(weight), None if bias is None else bias.view_as(bias)
    capsules = _result(iterate(form_votes(u, weight), bias, options)[-1].outputs, u, options)
    wanted = [t for t in (u, weight, bias) if t is not None and t.requires_grad]
    found = iter(torch.autograd.grad(capsules, wanted, grad_output, create_graph=True))
    gradients = [next(found) if t is not None and t.requires_grad else None for t in (u, weight, bias)]
    return gradients[0], gradients[1], gradients[2]


def _route_backward(
    votes: Tensor, steps: list[Iteration], grad_output: Tensor, options: RoutingOptions
) -> tuple[Tensor, Tensor]:
    """Gradients of the votes ``[B, J, I, D]`` and of the sums over all iterations ``[B, J, D]``.

    The gradient of a vote is a short sum of (number for the pair i, j) times (vector for the parent j), two terms
    for each iteration: so only the numbers and the vectors are collected, and one product at the end forms it.
    """
    numbers: list[Tensor] = []  # [B, J, I] each
    vectors: list[Tensor] = []  # [B, J, D] each
    grad_logits: Tensor | None = None
    total = torch.zeros_like(grad_output)
    for iteration in reversed(range(len(steps))):
        step = steps[iteration]
        grad_sums = _gradient_of_sums(step.sums, grad_output, options, last=grad_logits is None)
        total += grad_sums
        numbers.append(step.coefficients)
        vectors.append(grad_sums)
        if grad_logits is not None:  # b ← b + û·v at the end of this iteration, or b ← û·v
            numbers.append(grad_logits)
            vectors.append(step.centres)
        if iteration == 0 or options.gradient == "last":
            break
        grad_coefficients = (votes @ grad_sums.unsqueeze(3)).squeeze(3)
        weighted = step.coefficients * grad_coefficients
        through_softmax = weighted - step.coefficients * weighted.sum(dim=1, keepdim=True)
        if grad_logits is None or options.centre != "sum":
            grad_logits = through_softmax
        else:
            grad_logits = grad_logits + through_softmax
        grad_output = (grad_logits.unsqueeze(2) @ votes).squeeze(2)
    return torch.stack(numbers, dim=3) @ torch.stack(vectors, dim=2), total


def _gradient_of_sums(sums: Tensor, grad_output: Tensor, options: RoutingOptions, last: bool) -> Tensor:
    """Back through what the last iteration returns, or through the centres that the others leave."""
    with torch.enable_grad():
        leaf = sums.detach().requires_grad_()
        left = output_of(leaf, options) if last else centre_of(leaf, options)
        (gradient,) = torch.autograd.grad(left, leaf, grad_output)
    return gradient


def _add_vote_gradients(grad_votes: Tensor, u: Tensor, weight: Tensor, grad_weight: Tensor) -> Tensor:
    """Back through Eq. 2: add to ``grad_weight`` in place and return the gradient of ``u`` ``[B, I, P]``."""
    B, _, I, _ = grad_votes.shape
    if weight.ndim == 3:
        flat = grad_votes.transpose(1, 2).reshape(B * I, -1)  # [B·I, J·D]
        grad_weight.flatten(0, 1).addmm_(flat.T, u.reshape(B * I, -1).to(flat.dtype))
        return (flat @ weight.flatten(0, 1).to(flat.dtype)).view_as(u)
    by_child = grad_votes.permute(2, 0, 1, 3).flatten(2)  # [I, B, J·D]
    grad_weight.flatten(1, 2).baddbmm_(by_child.transpose(1, 2), u.transpose(0, 1).to(by_child.dtype))
    return torch.bmm(by_child, weight.flatten(1, 2).to(by_child.dtype)).transpose(0, 1)


def vote_buffer_bytes(u: Tensor, weight: Tensor, device_type: str) -> int:
    """Memory for the votes that exist at one time in training: the votes, their gradient, and that one reordered."""
    return 3 * _examples_at_a_time(u, weight, device_type) * _vote_bytes_of_one(u, weight)


def _examples_at_a_time(u: Tensor, weight: Tensor, device_type: str | None = None) -> int:
    budget = VOTE_BYTES_AT_A_TIME.get(device_type or u.device.type, VOTE_BYTES_AT_A_TIME["cuda"])
    return max(1, min(len(u), budget // _vote_bytes_of_one(u, weight)))


def _vote_bytes_of_one(u: Tensor, weight: Tensor) -> int:
    return u.shape[1] * weight.shape[-3] * weight.shape[-2] * max(u.element_size(), 4)
