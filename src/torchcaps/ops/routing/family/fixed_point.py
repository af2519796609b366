"""Dynamic routing as the search for a fixed point: the logit is overwritten, not accumulated."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.family.common import Recorder, check_iterations, prepare, squashed_output
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.squash import squash as squash_named

__all__ = ["fixed_point_routing"]


@without_autocast
def fixed_point_routing(
    votes: Tensor,
    iterations: int = 3,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    squash: str = "paper",
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Solve for capsules that are the squashed sum of the votes that agree with them.

    .. math:: v_j = \mathrm{squash}\Big(\sum_i \mathrm{softmax}_j\langle \hat u_{j|i}, v_j\rangle\,
              \hat u_{j|i} + \beta_j\Big)

    "Dynamic Routing Between Capsules" (Sabour et al. 2017) adds up the agreements of all iterations, so its
    coefficients harden with R; here R only says how near the fixed point is.

    Shape:
        votes: ``[B, I, J, D]``. bias: ``[J, D]``. mask: ``[B, I]`` or ``[I]``. Returns capsules ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.fixed_point_routing(torch.randn(2, 7, 3, 4)).capsules.shape
        torch.Size([2, 3, 4])
    """
    ready = prepare(votes, mask, bias)
    recorder = Recorder(return_trace, ready.mask)
    logits = ready.votes.new_zeros(ready.votes.shape[:3])
    for remaining in reversed(range(check_iterations(iterations))):
        coefficients = logits.softmax(dim=2)
        sums = torch.einsum("bij,bijd->bjd", coefficients, ready.votes)
        capsules = squash_named(sums if ready.bias is None else sums + ready.bias, kind=squash)
        recorder.add(logits, coefficients, capsules)
        if remaining:
            logits = torch.einsum("bijd,bjd->bij", ready.votes, capsules)
    return squashed_output(capsules, votes.dtype, recorder)
