"""Attention over the children, for comparison with transformers: the softmax runs over i instead of j."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.family.common import Recorder, check_iterations, prepare, squashed_output
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.squash import squash as squash_named

__all__ = ["attention_routing"]


@without_autocast
def attention_routing(
    votes: Tensor,
    iterations: int = 3,
    queries: Tensor | None = None,
    scale: float | None = None,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    squash: str = "paper",
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Every parent looks at all children: its coefficients sum to 1 over them.

    .. math:: c_{ij} = \mathrm{softmax}_i\Big(\frac{\langle \hat u_{j|i}, q_j\rangle}{\sqrt D}\Big),\quad
              q_j \leftarrow \sum_i c_{ij} \hat u_{j|i} + \beta_j,\quad v_j = \mathrm{squash}(q_j)

    "Attention Is All You Need" (Vaswani et al. 2017) with the votes as keys and values. The first query is
    ``queries`` or, without them, none: every child counts the same. Later ones are the results so far. With queries,
    one iteration and ``squash="none"`` this is :func:`torch.nn.functional.scaled_dot_product_attention`.

    Args:
        scale: of the products, 1/√D by default.

    Shape:
        votes: ``[B, I, J, D]``. queries: ``[J, D]`` or ``[B, J, D]``. bias: ``[J, D]``. mask: ``[B, I]`` or ``[I]``.
        Returns capsules ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> trace = ops.attention_routing(torch.randn(2, 7, 3, 4), return_trace=True).trace
        >>> trace.coefficients.sum(dim=2).allclose(torch.ones(3, 2, 3))
        True
    """
    ready = prepare(votes, mask, bias)
    recorder = Recorder(return_trace, ready.mask)
    B, _, J, D = votes.shape
    if queries is not None and tuple(queries.shape) not in ((J, D), (B, J, D)):
        raise ValueError(f"queries must be [J, D] = [{J}, {D}] or [{B}, {J}, {D}], got {list(queries.shape)}")
    scale = 1 / math.sqrt(D) if scale is None else scale
    query = None if queries is None else queries.to(ready.votes.dtype).expand(B, J, D)
    for _ in range(check_iterations(iterations)):
        if query is None:
            logits = ready.votes.new_zeros(ready.votes.shape[:3])
        else:
            logits = scale * torch.einsum("bijd,bjd->bij", ready.votes, query)
        coefficients = _over_children(logits, ready.mask)
        query = torch.einsum("bij,bijd->bjd", coefficients, ready.votes)
        if ready.bias is not None:
            query = query + ready.bias
        if return_trace:
            recorder.add(logits, coefficients, squash_named(query, kind=squash))
    assert query is not None
    return squashed_output(squash_named(query, kind=squash), votes.dtype, recorder)


def _over_children(logits: Tensor, mask: Tensor | None) -> Tensor:
    if mask is not None:
        logits = logits.masked_fill(~mask.unsqueeze(2), torch.finfo(logits.dtype).min)
    return logits.softmax(dim=1)
