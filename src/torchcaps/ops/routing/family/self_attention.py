"""Self-attention routing of Efficient-CapsNet: votes that agree with all other votes count more; no iteration."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.checks import check_shape
from torchcaps.ops.routing.family.common import Recorder, prepare, squashed_output
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.squash import squash as squash_named

__all__ = ["self_attention_routing"]


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
