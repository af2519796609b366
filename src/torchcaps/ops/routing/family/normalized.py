"""Agreement with a direction: centres of unit length inside the loop."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.family.common import Recorder, check_iterations, prepare, squashed_output
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.squash import squash as squash_named

__all__ = ["normalized_routing"]


@without_autocast
def normalized_routing(
    votes: Tensor,
    iterations: int = 3,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    squash: str = "paper",
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Fixed point routing with centres of unit length; squashed once, at the end.

    .. math:: s_j = \sum_i \mathrm{softmax}_j(b_{ij})\,\hat u_{j|i} + \beta_j,\quad
              b_{ij} \leftarrow \Big\langle \hat u_{j|i}, \frac{s_j}{\|s_j\|}\Big\rangle,\quad
              v_j = \mathrm{squash}(s_j)

    A short centre makes no agreement small, so a few votes are enough to start the clustering. Known from the
    modified Keras layer of Su (2018), which ends with ``squash="half"``.

    Shape:
        votes: ``[B, I, J, D]``. bias: ``[J, D]``. mask: ``[B, I]`` or ``[I]``. Returns capsules ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.normalized_routing(torch.randn(2, 7, 3, 4), squash="half").capsules.shape
        torch.Size([2, 3, 4])
    """
    ready = prepare(votes, mask, bias)
    recorder = Recorder(return_trace, ready.mask)
    logits = ready.votes.new_zeros(ready.votes.shape[:3])
    for remaining in reversed(range(check_iterations(iterations))):
        coefficients = logits.softmax(dim=2)
        sums = torch.einsum("bij,bijd->bjd", coefficients, ready.votes)
        if ready.bias is not None:
            sums = sums + ready.bias
        if return_trace:
            recorder.add(logits, coefficients, squash_named(sums, kind=squash))
        if remaining:
            logits = torch.einsum("bijd,bjd->bij", ready.votes, squash_named(sums, kind="unit"))
    return squashed_output(squash_named(sums, kind=squash), votes.dtype, recorder)
