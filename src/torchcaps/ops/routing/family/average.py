"""No routing at all: every parent gets the same share of every vote."""

from __future__ import annotations

from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.family.common import Recorder, prepare, squashed_output
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.squash import squash as squash_named

__all__ = ["average_routing"]


@without_autocast
def average_routing(
    votes: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    squash: str = "paper",
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Dynamic routing with one iteration (Sabour et al. 2017, the rows R = 1 of their Table 1).

    .. math:: v_j = \mathrm{squash}\Big(\frac{1}{J} \sum_i \hat u_{j|i} + \beta_j\Big)

    Shape:
        votes: ``[B, I, J, D]``. bias: ``[J, D]``. mask: ``[B, I]`` or ``[I]``. Returns capsules ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> votes = torch.randn(2, 7, 3, 4)
        >>> torch.allclose(ops.average_routing(votes).capsules, ops.dynamic_routing(votes, iterations=1))
        True
    """
    ready = prepare(votes, mask, bias)
    recorder = Recorder(return_trace, ready.mask)
    J = votes.shape[2]
    sums = ready.votes.sum(dim=1) / J
    capsules = squash_named(sums if ready.bias is None else sums + ready.bias, kind=squash)
    if return_trace:
        zeros = ready.votes.new_zeros(ready.votes.shape[:3])
        recorder.add(zeros, zeros + 1 / J, capsules)
    return squashed_output(capsules, votes.dtype, recorder)
