"""Inverted dot-product attention: the parents compete for the children, with layer normalisation."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.checks import check_shape
from torchcaps.ops.routing.family.common import Recorder, check_iterations, prepare
from torchcaps.ops.routing.output import RoutingOutput

__all__ = ["inverted_attention_routing"]


@without_autocast
def inverted_attention_routing(
    votes: Tensor,
    iterations: int = 3,
    norm_weight: Tensor | None = None,
    norm_bias: Tensor | None = None,
    presence_weight: Tensor | None = None,
    presence_bias: Tensor | None = None,
    start: Tensor | None = None,
    scale: float | None = None,
    mask: Tensor | None = None,
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Attention with the softmax over the parents, and layer normalisation where others squash.

    .. math:: c_{ij} = \mathrm{softmax}_j\Big(\frac{\langle \hat u_{j|i}, v_j\rangle}{\sqrt D}\Big),\quad
              v_j = \mathrm{LayerNorm}\Big(\sum_i c_{ij} \hat u_{j|i}\Big),\quad
              a_j = \mathrm{sigmoid}(\langle w, v_j\rangle + b)

    "Capsules with Inverted Dot-Product Attention Routing" (Tsai et al. 2020). The length of a capsule means nothing
    here; its presence is read off by one learned direction w for all parents, as their classifier does.

    Args:
        norm_weight, norm_bias: of the layer normalisation; 1 and 0 without them.
        presence_weight, presence_bias: w and b; without them every activation is 1.
        start: parents to begin with. Without them the first coefficients are 1/J. A stack whose layers iterate at
            the same time passes the parents of the iteration before.
        scale: of the products, 1/√D by default.

    Shape:
        votes: ``[B, I, J, D]``. norm_weight, norm_bias, presence_weight: ``[D]``. presence_bias: ``[]``.
        start: ``[B, J, D]``. mask: ``[B, I]`` or ``[I]``. Returns capsules ``[B, J, D]`` and activations ``[B, J]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> capsules = ops.inverted_attention_routing(torch.randn(2, 7, 3, 4)).capsules
        >>> capsules.mean(dim=2).abs().max() < 1e-5
        tensor(True)
    """
    ready = prepare(votes, mask)
    B, _, J, D = votes.shape
    check_shape("start", start, B=B, J=J, D=D)
    for name, x in (("norm_weight", norm_weight), ("norm_bias", norm_bias), ("presence_weight", presence_weight)):
        check_shape(name, x, D=D)
    dtype = ready.votes.dtype
    scale = 1 / math.sqrt(D) if scale is None else scale
    recorder = Recorder(return_trace, ready.mask)
    parents = None if start is None else start.to(dtype)
    for _ in range(check_iterations(iterations)):
        if parents is None:
            logits = ready.votes.new_zeros(ready.votes.shape[:3])
        else:
            logits = scale * torch.einsum("bijd,bjd->bij", ready.votes, parents)
        coefficients = logits.softmax(dim=2)
        sums = torch.einsum("bij,bijd->bjd", coefficients, ready.votes)
        parents = torch.nn.functional.layer_norm(
            sums,
            (D,),
            None if norm_weight is None else norm_weight.to(dtype),
            None if norm_bias is None else norm_bias.to(dtype),
        )
        if return_trace:
            recorder.add(logits, coefficients, parents, _presence(parents, presence_weight, presence_bias))
    assert parents is not None
    activations = _presence(parents, presence_weight, presence_bias)
    return RoutingOutput(parents.to(votes.dtype), activations, recorder.trace())


def _presence(parents: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    if weight is None:
        return parents.new_ones(parents.shape[:2])
    scores = parents @ weight.to(parents.dtype)
    return (scores if bias is None else scores + bias.to(parents.dtype)).sigmoid()
