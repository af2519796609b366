"""How decided a routing is: the entropy of its couplings, and how many parents a child serves, layer by layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from torchcaps.models import Model
from torchcaps.models.mode import evaluation_mode
from torchcaps.nn import CapsuleLinear, ConvCapsules
from torchcaps.ops import RoutingTrace
from torchcaps.ops.routing.trace import child_entropy

__all__ = ["LayerCoupling", "coupling_sums", "measure_couplings", "routing_traces"]


@dataclass(frozen=True)
class LayerCoupling:
    r"""The couplings of one layer, after each routing iteration.

    With :math:`p_{ij} = |c_{ij}| / \sum_k |c_{ik}|`, the shares of child i, and
    :math:`H_i = -\sum_j p_{ij} \ln p_{ij}`:

    Attributes:
        upper: J, the parents there are.
        entropy: mean of :math:`H_i` over children and pictures, in nats: ln J where each child divides itself evenly,
            0 where each serves one parent, so that the picture is parsed into a tree.
        parents: mean of :math:`e^{H_i}`, the effective number of parents that a child serves: from 1, a tree, to J.

    The shares are taken over the parents also where a routing normalises otherwise (leaky, max-min, attention,
    self-attention), and by size where coefficients may be negative. Children that are masked do not count.
    """

    upper: int
    entropy: tuple[float, ...]
    parents: tuple[float, ...]


def coupling_sums(trace: RoutingTrace) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of entropy and of effective parents over the children that count, and how many these are: ``[R]`` each.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> _, trace = ops.dynamic_routing(torch.zeros(2, 5, 4, 8), return_trace=True)
        >>> _, parents, count = coupling_sums(trace)
        >>> (parents / count).tolist()  # nothing to decide by: all four alike, in each of three iterations
        [4.0, 4.0, 4.0]
    """
    coefficients = trace.coefficients.detach().double()  # [R, B, I, J]
    counts = coefficients.abs().sum(dim=3) > 0
    entropy = child_entropy(coefficients)
    return (
        entropy.sum(dim=(1, 2)),
        (entropy.exp() * counts).sum(dim=(1, 2)),
        counts.sum(dim=(1, 2)),
    )


def measure_couplings(model: Model, batches: Iterable[Tensor]) -> dict[str, LayerCoupling]:
    """Couplings of every capsule layer over batches of pictures, from below to above."""
    sums: dict[str, tuple[Tensor, Tensor, Tensor]] = {}
    upper: dict[str, int] = {}
    for images in batches:
        for name, trace in routing_traces(model, images).items():
            found = coupling_sums(trace)
            before = sums.get(name)
            sums[name] = found if before is None else tuple(a + b for a, b in zip(before, found, strict=True))  # type: ignore[assignment]
            upper[name] = trace.coefficients.shape[3]
    return {
        name: LayerCoupling(upper[name], tuple((entropy / count).tolist()), tuple((parents / count).tolist()))
        for name, (entropy, parents, count) in sums.items()
    }


@torch.no_grad()
def routing_traces(model: Model, images: Tensor) -> dict[str, RoutingTrace]:
    """What every capsule layer of a network does with these pictures, in the order in which they are reached.

    Each layer is called again, alone, with what it was given, since networks hand on the trace of the last one only.
    The network is asked in evaluation mode and left in the mode it was in.
    """
    calls: dict[str, Callable[[], RoutingTrace]] = {}

    def noting(name: str) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
        def note(layer: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
            calls[name] = lambda: _trace(layer, arguments, keywords)

        return note

    layers = [(n, layer) for n, layer in model.named_modules() if isinstance(layer, CapsuleLinear | ConvCapsules)]
    handles = [layer.register_forward_pre_hook(noting(name), with_kwargs=True) for name, layer in layers]
    with evaluation_mode(model):
        try:
            model(images)
        finally:
            for handle in handles:
                handle.remove()
        return {name: trace() for name, trace in calls.items()}


def _trace(layer: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> RoutingTrace:
    given = inspect.signature(layer.forward).bind(*arguments, **keywords).arguments
    if isinstance(layer, CapsuleLinear):
        trace = layer.traced(**{name: value for name, value in given.items() if name != "full"}).trace
    else:
        trace = layer(**{**given, "return_trace": True}).trace
    assert isinstance(trace, RoutingTrace)
    return trace
