"""Self-routing: every child decides by a learned gate, without looking at the others."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.checks import check_shape
from torchcaps.ops.routing.family.common import LEAST_ACTIVATION, Recorder, child_shares, prepare
from torchcaps.ops.routing.output import RoutingOutput

__all__ = ["gate_logits", "self_routing"]


@without_autocast
def self_routing(
    votes: Tensor,
    gates: Tensor,
    activations: Tensor | None = None,
    mask: Tensor | None = None,
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Route by gates that depend on the child alone; there is no iteration.

    .. math:: c_{ij} = \mathrm{softmax}_j(g_{ij}),\quad
              a_j = \frac{\sum_i c_{ij} a_i}{\sum_i a_i},\quad
              v_j = \frac{\sum_i c_{ij} a_i \hat u_{j|i}}{\sum_i c_{ij} a_i}

    "Self-Routing Capsule Networks" (Hahn, Pyeon, Kim 2019). :func:`gate_logits` makes the g from the lower
    capsules. The capsule is a mean and not squashed; its presence is the activation, and these sum to 1.

    Shape:
        votes: ``[B, I, J, D]``. gates: ``[B, I, J]``. activations: ``[B, I]``. mask: ``[B, I]`` or ``[I]``.
        Returns capsules ``[B, J, D]`` and activations ``[B, J]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> out = ops.self_routing(torch.randn(2, 7, 3, 4), torch.randn(2, 7, 3))
        >>> out.activations.sum(dim=1).allclose(torch.ones(2))
        True
    """
    ready = prepare(votes, mask, activations=activations)
    B, I, J, _ = votes.shape
    check_shape("gates", gates, B=B, I=I, J=J)
    logits = gates.to(ready.votes.dtype)
    if ready.mask is not None:
        logits = logits.masked_fill(~ready.mask.unsqueeze(2), 0)
    coefficients = logits.softmax(dim=2)
    capsules = torch.einsum("bij,bijd->bjd", child_shares(logits, ready), ready.votes)
    received = (coefficients * ready.activations.unsqueeze(2)).sum(dim=1)  # [B, J]
    present = received / ready.activations.sum(dim=1, keepdim=True).clamp(min=LEAST_ACTIVATION)
    recorder = Recorder(return_trace, ready.mask)
    recorder.add(logits, coefficients, capsules, present)
    return RoutingOutput(capsules.to(votes.dtype), present, recorder.trace())


@without_autocast
def gate_logits(u: Tensor, weight: Tensor) -> Tensor:
    """Gates g_ij = ⟨w_ij, u_i⟩, in at least float32: a softmax follows.

    Shape:
        u: ``[B, I, P]``. weight: ``[I, J, P]``, or ``[J, P]`` shared by all lower capsules. Returns ``[B, I, J]``.
    """
    dtype = torch.promote_types(torch.promote_types(u.dtype, weight.dtype), torch.float32)
    P, J = u.shape[2], weight.shape[-2]
    check_shape("weight of the gates", weight, **({} if weight.ndim == 2 else {"I": u.shape[1]}), J=J, P=P)
    return torch.einsum("bip,ijp->bij" if weight.ndim == 3 else "bip,jp->bij", u.to(dtype), weight.to(dtype))
