"""Routings with learned weights: self-routing, inverted attention, self-attention."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Self

import torch
from torch import Tensor, nn

from torchcaps import ops
from torchcaps.nn.routing.base import LayerSizes, RoutingAlgorithm
from torchcaps.nn.routing.registry import register_routing
from torchcaps.nn.start_values import CAPSULE_STD, truncated_normal_
from torchcaps.ops import RoutingOutput
from torchcaps.ranges import Factor, Iterations

__all__ = ["InvertedAttentionRouting", "SelfAttentionRouting", "SelfRouting"]


@register_routing("self-routing")
class SelfRouting(RoutingAlgorithm):
    """Learned gates, no iteration; see :func:`torchcaps.ops.self_routing`.

    Args:
        in_capsules: I, each with gates of its own; ``None`` shares them.
        out_capsules, in_dim: J and P.
    """

    uses_activations = True
    uses_lower = True
    squashes = False
    not_applicable = MappingProxyType(
        {
            "length_below_one": "the capsule is a mean of the votes, not squashed; its presence is the activation",
            "coefficients": "the capsule is a mean: they cannot be read off it; the trace shows that they sum to 1",
            "parent_permutation": "every parent has gates of its own, which do not change places with the votes",
            "rotation": "the gates look at the lower capsules, which do not turn with the votes",
        }
    )

    def __init__(
        self,
        in_capsules: int | None,
        out_capsules: int,
        in_dim: int,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        shape = (out_capsules, in_dim) if in_capsules is None else (in_capsules, out_capsules, in_dim)
        self.gates = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    @classmethod
    def for_layer(cls, sizes: LayerSizes, **settings: Any) -> Self:
        return cls(sizes.in_capsules, sizes.out_capsules, sizes.in_dim, sizes.device, sizes.dtype, **settings)

    def reset_parameters(self) -> None:
        truncated_normal_(self.gates, CAPSULE_STD)

    def forward(
        self,
        votes: Tensor,
        *,
        activations: Tensor | None = None,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        lower: Tensor | None = None,
        return_trace: bool = False,
    ) -> RoutingOutput:
        if lower is None:
            raise ValueError("self-routing decides by the lower capsules; pass lower=[B, I, P] beside the votes")
        gates = ops.gate_logits(lower, self.gates)
        return ops.self_routing(votes, gates, activations, mask, return_trace)


@register_routing("inverted-attention")
class InvertedAttentionRouting(RoutingAlgorithm):
    """Inverted dot-product attention; see :func:`torchcaps.ops.inverted_attention_routing`.

    Args:
        out_dim: D.
        presence: learn the direction that tells how present a capsule is; a layer whose activations nobody reads
            can do without it.
    """

    squashes = False
    not_applicable = MappingProxyType(
        {
            "length_below_one": "layer normalisation gives all capsules the same length; their presence is learned",
            "coefficients": "layer normalisation cannot be undone; the trace shows that they sum to 1",
            "one_iteration_averages": "layer normalisation stands where the squash is",
            "rotation": "layer normalisation works on the single components of a capsule",
        }
    )

    def __init__(
        self,
        out_dim: int,
        iterations: Iterations = 3,
        scale: Factor | None = None,
        presence: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(iterations=iterations, scale=scale, presence=presence)
        self.norm_weight = nn.Parameter(torch.empty(out_dim, device=device, dtype=dtype))
        self.norm_bias = nn.Parameter(torch.empty(out_dim, device=device, dtype=dtype))
        self.presence_weight = nn.Parameter(torch.empty(out_dim, device=device, dtype=dtype)) if presence else None
        self.presence_bias = nn.Parameter(torch.empty((), device=device, dtype=dtype)) if presence else None
        self.reset_parameters()

    @classmethod
    def for_layer(cls, sizes: LayerSizes, **settings: Any) -> Self:
        return cls(sizes.out_dim, device=sizes.device, dtype=sizes.dtype, **settings)

    def reset_parameters(self) -> None:
        nn.init.ones_(self.norm_weight)
        nn.init.zeros_(self.norm_bias)
        if self.presence_weight is not None and self.presence_bias is not None:
            truncated_normal_(self.presence_weight, CAPSULE_STD)
            nn.init.zeros_(self.presence_bias)

    def forward(
        self,
        votes: Tensor,
        *,
        activations: Tensor | None = None,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        lower: Tensor | None = None,
        return_trace: bool = False,
        start: Tensor | None = None,
        iterations: int | None = None,
    ) -> RoutingOutput:
        """As for every routing; ``start`` ``[B, J, D]`` continues from these parents, for ``iterations`` if given."""
        return ops.inverted_attention_routing(
            votes,
            self.settings["iterations"] if iterations is None else iterations,
            self.norm_weight,
            self.norm_bias,
            self.presence_weight,
            self.presence_bias,
            start=start,
            scale=self.settings["scale"],
            mask=mask,
            return_trace=return_trace,
        )


@register_routing("self-attention")
class SelfAttentionRouting(RoutingAlgorithm):
    """Self-attention of Efficient-CapsNet; see :func:`torchcaps.ops.self_attention_routing`.

    Args:
        in_capsules: I, each with a learned prior for every parent; ``None`` takes any number, without priors.
        out_capsules: J.
    """

    normalizes = "nothing"
    not_applicable = MappingProxyType(
        {
            "length_below_one": "1 − exp(−‖s‖) is below 1, but rounds to it for long sums",
            "coefficients": "the squash is 1 − exp(−‖s‖), and priors are added to the coefficients",
        }
    )

    def __init__(
        self,
        in_capsules: int | None,
        out_capsules: int,
        squash: str = "exponential",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(squash=squash)
        self.priors = (
            None
            if in_capsules is None
            else nn.Parameter(torch.empty(in_capsules, out_capsules, device=device, dtype=dtype))
        )
        self.reset_parameters()

    @classmethod
    def for_layer(cls, sizes: LayerSizes, **settings: Any) -> Self:
        return cls(sizes.in_capsules, sizes.out_capsules, device=sizes.device, dtype=sizes.dtype, **settings)

    def reset_parameters(self) -> None:
        if self.priors is not None:
            nn.init.zeros_(self.priors)

    def forward(
        self,
        votes: Tensor,
        *,
        activations: Tensor | None = None,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        lower: Tensor | None = None,
        return_trace: bool = False,
    ) -> RoutingOutput:
        return ops.self_attention_routing(votes, self.priors, mask, return_trace=return_trace, **self.settings)
