"""Routing as what it is: soft k-means on the votes."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.family.common import Recorder, check_iterations, child_shares, prepare, squashed_output
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.squash import squash as squash_named

__all__ = ["DISTANCES", "k_means_routing"]

DISTANCES = ("euclidean", "inner")


@without_autocast
def k_means_routing(
    votes: Tensor,
    iterations: int = 3,
    distance: str = "euclidean",
    temperature: float = 10.0,
    centres: Tensor | None = None,
    mask: Tensor | None = None,
    squash: str = "paper",
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Soft k-means: each child belongs most to the parent whose centre is nearest to its vote.

    .. math:: c_{ij} = \mathrm{softmax}_j\big(-K\, d(\hat u_{j|i}, v_j)\big)

    with the centre that minimises the smoothed loss :math:`\sum_i -\frac1K \ln\sum_j e^{-K d}`:

    .. math:: d = \|\hat u - v\|^2:\ v_j = \frac{\sum_i c_{ij} \hat u_{j|i}}{\sum_i c_{ij}};\qquad
              d = -\langle \hat u, v\rangle:\ v_j = \frac{s_j}{\|s_j\|},\ s_j = \sum_i c_{ij} \hat u_{j|i}

    "Least squares quantization in PCM" (Lloyd 1982) is the limit of large K. The loss of the inner product has no
    lower bound, so its centre is kept at unit length. The result is the squashed centre, or the squashed sum.

    Args:
        distance: ``"euclidean"`` (squared) or ``"inner"``.
        temperature: K of the smooth minimum; the larger, the harder the assignment.
        centres: to start from; without them the first coefficients are all 1/J.

    Shape:
        votes: ``[B, I, J, D]``. centres: ``[J, D]`` or ``[B, J, D]``. mask: ``[B, I]`` or ``[I]``.
        Returns capsules ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.k_means_routing(torch.randn(2, 7, 3, 4), distance="inner", temperature=5.0).capsules.shape
        torch.Size([2, 3, 4])
    """
    if distance not in DISTANCES:
        raise ValueError(f"unknown distance {distance!r}; choose 'euclidean' or 'inner'")
    ready = prepare(votes, mask)
    recorder = Recorder(return_trace, ready.mask)
    B, _, J, D = votes.shape
    if centres is not None and tuple(centres.shape) not in ((J, D), (B, J, D)):
        raise ValueError(f"centres must be [J, D] = [{J}, {D}] or [{B}, {J}, {D}], got {list(centres.shape)}")
    centre = None if centres is None else centres.to(ready.votes.dtype).expand(B, J, D)
    for _ in range(check_iterations(iterations)):
        logits = _logits(ready.votes, centre, distance, temperature)
        coefficients = logits.softmax(dim=2)
        weights = child_shares(logits, ready) if distance == "euclidean" else coefficients
        sums = torch.einsum("bij,bijd->bjd", weights, ready.votes)
        centre = sums if distance == "euclidean" else squash_named(sums, kind="unit")
        if return_trace:
            recorder.add(logits, coefficients, squash_named(sums, kind=squash))
    return squashed_output(squash_named(sums, kind=squash), votes.dtype, recorder)


def _logits(votes: Tensor, centre: Tensor | None, distance: str, temperature: float) -> Tensor:
    """−K d for every pair, ``[B, I, J]``."""
    if centre is None:
        return votes.new_zeros(votes.shape[:3])
    if distance == "inner":
        return temperature * torch.einsum("bijd,bjd->bij", votes, centre)
    return -temperature * (votes - centre.unsqueeze(1)).square().sum(dim=3)
