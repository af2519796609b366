"""Self-attention routing of Efficient-CapsNet: votes that agree with all other votes count more; no iteration."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchcaps.ops.precision import with_product_dtype, without_autocast
from torchcaps.ops.routing.checks import check_linear, check_mask, check_shape
from torchcaps.ops.routing.dynamic import route_lower
from torchcaps.ops.routing.eager import sum_of_votes
from torchcaps.ops.routing.family.common import Recorder, prepare, squashed_output
from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.squash import squash as squash_named

__all__ = ["SELF_ATTENTION", "self_attention_linear", "self_attention_routing"]

# Two iterations: even coefficients, then those by agreement with the sums. The priors come in before the squash.
SELF_ATTENTION = RoutingOptions(iterations=2, centre="total", squashed=False)


@without_autocast
def self_attention_routing(
    votes: Tensor,
    priors: Tensor | None = None,
    mask: Tensor | None = None,
    squash: str = "exponential",
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Route by the agreement of each vote with all votes for the same parent.

    .. math:: c_{ij} = \mathrm{softmax}_j\Big(\frac{1}{\sqrt D} \sum_k \langle \hat u_{j|i}, \hat u_{j|k}\rangle\Big)
              + \rho_{ij},\quad v_j = \mathrm{squash}\Big(\sum_i c_{ij} \hat u_{j|i}\Big)

    "Efficient-CapsNet: Capsule Network with Self-Attention Routing" (Mazzia, Salvetti, Chiaberge 2021). The matrix
    of all pairs i, k is never formed, since Σ_k ⟨û_i, û_k⟩ = ⟨û_i, Σ_k û_k⟩.

    Args:
        priors: ρ, learned, added to the coefficients.

    Shape:
        votes: ``[B, I, J, D]``. priors: ``[I, J]``. mask: ``[B, I]`` or ``[I]``. Returns capsules ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.self_attention_routing(torch.randn(2, 7, 3, 4)).capsules.shape
        torch.Size([2, 3, 4])
    """
    ready = prepare(votes, mask)
    I, J, D = votes.shape[1:]
    check_shape("priors", priors, I=I, J=J)
    together = ready.votes.sum(dim=1)
    logits = torch.einsum("bijd,bjd->bij", ready.votes, together) / math.sqrt(D)
    coefficients = logits.softmax(dim=2)
    if priors is not None:
        coefficients = coefficients + priors.to(coefficients.dtype)
    capsules = squash_named(torch.einsum("bij,bijd->bjd", coefficients, ready.votes), kind=squash)
    recorder = Recorder(return_trace, ready.mask)
    recorder.add(logits, coefficients, capsules)
    return squashed_output(capsules, votes.dtype, recorder)


def self_attention_linear(
    u: Tensor,
    weight: Tensor,
    priors: Tensor | None = None,
    mask: Tensor | None = None,
    squash: str = "exponential",
    backend: str = "auto",
) -> Tensor:
    r"""Votes and :func:`self_attention_routing` in one op, so that all votes need never exist at once.

    Without priors these are two iterations of fixed point routing, and run as such: even coefficients first, whose
    sums, J/√D times, are what each vote is compared with. The priors add a sum that is linear in the children:

    .. math:: \sum_i \rho_{ij} W_{ij} u_i

    Args:
        priors, mask, squash: as in :func:`self_attention_routing`.
        backend: as in :func:`capsule_linear`.

    Shape:
        u: ``[B, I, P]``. weight: ``[I, J, D, P]``, or ``[J, D, P]`` shared by all lower capsules. priors: ``[I, J]``.
        mask: ``[B, I]`` or ``[I]``. Returns ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.self_attention_linear(torch.randn(2, 1152, 8), torch.randn(1152, 10, 16, 8)).shape
        torch.Size([2, 10, 16])
    """
    u, weight = with_product_dtype(u, weight)
    check_linear(u, weight)
    check_shape("priors", priors, I=u.shape[1], J=weight.shape[-3])
    if mask is not None:
        mask = check_mask(mask, u.shape[0], u.shape[1])
        u = u.masked_fill(~mask[:, :, None], 0)  # a zero capsule casts zero votes
    return _self_attention_linear(u, weight, priors, mask, squash, backend)


@without_autocast
def _self_attention_linear(
    u: Tensor, weight: Tensor, priors: Tensor | None, mask: Tensor | None, squash: str, backend: str
) -> Tensor:
    sums = route_lower(u, weight, None, mask, SELF_ATTENTION, backend)
    if priors is not None:
        sums = sums + sum_of_votes(u, weight, priors)
    return squash_named(sums, kind=squash).to(u.dtype)
