"""Coefficients stretched between a lower and an upper bound instead of a softmax."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.family.common import Recorder, check_iterations, prepare, squashed_output
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.squash import squash as squash_named

__all__ = ["max_min_routing"]


@without_autocast
def max_min_routing(
    votes: Tensor,
    iterations: int = 3,
    lower: float = 0.0,
    upper: float = 1.0,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    squash: str = "paper",
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Routing with max–min normalised coefficients.

    .. math:: c_{ij} = p + (q - p) \frac{b_{ij} - \min_k b_{ik}}{\max_k b_{ik} - \min_k b_{ik}},\quad
              v_j = \mathrm{squash}\Big(\sum_i c_{ij} \hat u_{j|i} + \beta_j\Big),\quad
              b_{ij} \leftarrow b_{ij} + \hat u_{j|i} \cdot v_j

    "Capsule Networks with Max-Min Normalization" (Zhao et al. 2019). Small logits keep a softmax near 1/J; this
    uses the whole range from p (``lower``) to q (``upper``) and lets a child belong to several parents. Where all
    logits of a child are equal, as at the start, every coefficient is q.

    Shape:
        votes: ``[B, I, J, D]``. bias: ``[J, D]``. mask: ``[B, I]`` or ``[I]``. Returns capsules ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> trace = ops.max_min_routing(torch.randn(2, 7, 3, 4), return_trace=True).trace
        >>> trace.coefficients[-1].amax(dim=-1).unique()
        tensor([1.])
    """
    ready = prepare(votes, mask, bias)
    recorder = Recorder(return_trace, ready.mask)
    logits = ready.votes.new_zeros(ready.votes.shape[:3])
    for remaining in reversed(range(check_iterations(iterations))):
        coefficients = _max_min(logits, lower, upper)
        sums = torch.einsum("bij,bijd->bjd", coefficients, ready.votes)
        capsules = squash_named(sums if ready.bias is None else sums + ready.bias, kind=squash)
        recorder.add(logits, coefficients, capsules)
        if remaining:
            logits = logits + torch.einsum("bijd,bjd->bij", ready.votes, capsules)
    return squashed_output(capsules, votes.dtype, recorder)


def _max_min(logits: Tensor, lower: float, upper: float) -> Tensor:
    lowest = logits.amin(dim=2, keepdim=True)
    spread = logits.amax(dim=2, keepdim=True) - lowest
    # A range of 0, or so small that the gradient overflows, must not reach it.
    differ = spread > torch.finfo(spread.dtype).tiny / torch.finfo(spread.dtype).eps
    spread = torch.where(differ, spread, 1.0)
    return torch.where(differ, lower + (upper - lower) * (logits - lowest) / spread, upper)
