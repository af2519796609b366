"""The public routing ops: arguments are checked here, the work is done by a backend."""

from __future__ import annotations

from typing import Literal, overload

import torch
from torch import Tensor

from torchcaps.ops.precision import with_product_dtype, without_autocast
from torchcaps.ops.routing import eager, naive, triton
from torchcaps.ops.routing.backends import choose_backend
from torchcaps.ops.routing.checks import check_linear, check_mask, check_shape, check_sizes
from torchcaps.ops.routing.loop import form_votes, iterate
from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.routing.trace import RoutingTrace

__all__ = ["capsule_linear", "dynamic_routing", "route_lower", "votes"]


def votes(u: Tensor, weight: Tensor) -> Tensor:
    r"""Predictions of every lower capsule for every upper one (Eq. 2): :math:`\hat u_{j|i} = W_{ij} u_i`.

    Shape:
        u: ``[B, I, P]``. weight: ``[I, J, D, P]``, or ``[J, D, P]`` shared by all lower capsules.
        Returns ``[B, I, J, D]``.
    """
    u, weight = with_product_dtype(u, weight)
    check_linear(u, weight)
    return form_votes(u, weight).transpose(1, 2)


@overload
def dynamic_routing(
    votes: Tensor,
    iterations: int = ...,
    bias: Tensor | None = ...,
    leaky: bool = ...,
    mask: Tensor | None = ...,
    gradient: str = ...,
    return_trace: Literal[False] = ...,
) -> Tensor: ...
@overload
def dynamic_routing(
    votes: Tensor,
    iterations: int = ...,
    bias: Tensor | None = ...,
    leaky: bool = ...,
    mask: Tensor | None = ...,
    gradient: str = ...,
    *,
    return_trace: Literal[True],
) -> tuple[Tensor, RoutingTrace]: ...
def dynamic_routing(
    votes: Tensor,
    iterations: int = 3,
    bias: Tensor | None = None,
    leaky: bool = False,
    mask: Tensor | None = None,
    gradient: str = "all",
    return_trace: bool = False,
) -> Tensor | tuple[Tensor, RoutingTrace]:
    r"""Routing by agreement (Procedure 1).

    .. math:: c_{ij} = \mathrm{softmax}_j(b_{ij}),\quad s_j = \sum_i c_{ij} \hat u_{j|i} + \beta_j,\quad
              v_j = \mathrm{squash}(s_j),\quad b_{ij} \leftarrow b_{ij} + \hat u_{j|i} \cdot v_j

    The logits start at 0 for every example; the softmax runs over the parents j.

    Args:
        iterations: R; 1 is plain averaging with coefficients 1/J.
        bias: β, added to the sums inside the loop as in the authors' code.
        leaky: an extra logit fixed at 0 ("none of the above") takes part in the softmax and is dropped after it.
        mask: true where a lower capsule is present; the others neither vote nor get a gradient.
        gradient: ``"all"`` flows through every iteration, ``"last"`` takes the last coefficients as constants.
        return_trace: also return the :class:`RoutingTrace`.

    Shape:
        votes: ``[B, I, J, D]``. bias: ``[J, D]``. mask: ``[B, I]`` or ``[I]``. Returns ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> capsules, trace = ops.dynamic_routing(torch.randn(2, 1152, 10, 16), return_trace=True)
        >>> capsules.shape, trace.coefficients.shape
        (torch.Size([2, 10, 16]), torch.Size([3, 2, 1152, 10]))
    """
    return _route_votes(votes, bias, mask, RoutingOptions(iterations, leaky, gradient), return_trace)


@without_autocast
def _route_votes(
    votes: Tensor, bias: Tensor | None, mask: Tensor | None, options: RoutingOptions, return_trace: bool
) -> Tensor | tuple[Tensor, RoutingTrace]:
    if votes.ndim != 4 or not votes.is_floating_point():
        raise ValueError(
            f"votes must be floating point [B, I, J, D], got {votes.dtype} {list(votes.shape)}; "
            "ops.votes(u, weight) makes them from lower capsules"
        )
    check_sizes(I=votes.shape[1], J=votes.shape[2], D=votes.shape[3])
    check_shape("bias", bias, J=votes.shape[2], D=votes.shape[3])
    if mask is not None:
        mask = check_mask(mask, votes.shape[0], votes.shape[1])
        votes = votes.masked_fill(~mask[:, :, None, None], 0)  # a zero vote adds nothing to any sum
    steps = iterate(votes.transpose(1, 2), bias, options)
    capsules = steps[-1].outputs.to(votes.dtype)
    if not return_trace:
        return capsules
    coefficients = torch.stack([step.coefficients.transpose(1, 2) for step in steps])
    trace = RoutingTrace(
        logits=torch.stack([step.logits.transpose(1, 2) for step in steps]),
        coefficients=coefficients if mask is None else coefficients * mask[None, :, :, None],
        outputs=torch.stack([step.outputs for step in steps]),
    )
    return capsules, trace


@overload
def capsule_linear(
    u: Tensor,
    weight: Tensor,
    iterations: int = ...,
    bias: Tensor | None = ...,
    leaky: bool = ...,
    backend: str = ...,
    return_trace: Literal[False] = ...,
    *,
    mask: Tensor | None = ...,
    gradient: str = ...,
    centre: str = ...,
    sharpness: float = ...,
) -> Tensor: ...
@overload
def capsule_linear(
    u: Tensor,
    weight: Tensor,
    iterations: int = ...,
    bias: Tensor | None = ...,
    leaky: bool = ...,
    backend: str = ...,
    *,
    return_trace: Literal[True],
    mask: Tensor | None = ...,
    gradient: str = ...,
    centre: str = ...,
    sharpness: float = ...,
) -> tuple[Tensor, RoutingTrace]: ...
def capsule_linear(
    u: Tensor,
    weight: Tensor,
    iterations: int = 3,
    bias: Tensor | None = None,
    leaky: bool = False,
    backend: str = "auto",
    return_trace: bool = False,
    *,
    mask: Tensor | None = None,
    gradient: str = "all",
    centre: str = "sum",
    sharpness: float = 1.0,
) -> Tensor | tuple[Tensor, RoutingTrace]:
    """Votes (Eq. 2) and routing (Procedure 1) in one op, so that all votes need never exist at once.

    The same as ``dynamic_routing(votes(u, weight), ...)`` but faster and leaner.

    Args:
        backend: ``"naive"``, ``"eager"``, ``"triton"`` or ``"auto"``; see :func:`torchcaps.explain_backend`.
        iterations, bias, leaky, mask, gradient, return_trace: as in :func:`dynamic_routing`.
        centre: what the votes are compared with after each iteration. ``"sum"`` is dynamic routing; ``"capsule"``, the
            capsule of that iteration alone, is :func:`fixed_point_routing`; ``"direction"``, a vector of length
            ``sharpness`` along it, is :func:`normalized_routing`, and :func:`k_means_routing` by inner product with
            ``sharpness`` as K and no bias; ``"total"`` is J/√D times the sums, as :func:`self_attention_linear` has it.

    Shape:
        u: ``[B, I, P]``. weight: ``[I, J, D, P]``, or ``[J, D, P]`` shared by all lower capsules.
        bias: ``[J, D]``. mask: ``[B, I]`` or ``[I]``. Returns ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.capsule_linear(torch.randn(2, 1152, 8), torch.randn(1152, 10, 16, 8)).shape
        torch.Size([2, 10, 16])
    """
    options = RoutingOptions(iterations, leaky, gradient, centre, sharpness)
    u, weight = with_product_dtype(u, weight)
    check_linear(u, weight)
    check_shape("bias", bias, J=weight.shape[-3], D=weight.shape[-2])
    if mask is not None:
        mask = check_mask(mask, u.shape[0], u.shape[1])
        u = u.masked_fill(~mask[:, :, None], 0)  # a zero capsule casts zero votes
    if return_trace:
        return _route_votes(votes(u, weight), bias, mask, options, return_trace=True)
    return route_lower(u, weight, bias, mask, options, backend)


@without_autocast
def route_lower(
    u: Tensor, weight: Tensor, bias: Tensor | None, mask: Tensor | None, options: RoutingOptions, backend: str
) -> Tensor:
    """Arguments that are checked, to the backend that takes them; children that the mask leaves out are 0."""
    name, _ = choose_backend(backend, u, weight)
    if name == "naive":
        capsules = naive.capsule_linear(u, weight, bias, mask, options)
        return capsules.to(u.dtype) if options.squashed else capsules
    if name == "triton":
        return triton.capsule_linear(u, weight, bias, options)
    return eager.capsule_linear(u, weight, bias, options)
