"""Routings by agreement: dynamic routing and its relatives, without parameters of their own."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from torch import Tensor

from torchcaps import ops
from torchcaps.nn.routing.base import RoutingAlgorithm
from torchcaps.nn.routing.registry import register_routing
from torchcaps.ops import RoutingOutput
from torchcaps.ops.routing.checks import check_number
from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ranges import Factor, Iterations

__all__ = [
    "AttentionRouting",
    "AverageRouting",
    "DynamicRouting",
    "FixedPointRouting",
    "LeakyRouting",
    "MaxMinRouting",
    "NormalizedRouting",
]


@register_routing("dynamic")
class DynamicRouting(RoutingAlgorithm):
    """Procedure 1 of Sabour et al. 2017; see :func:`torchcaps.ops.dynamic_routing`.

    In :class:`torchcaps.nn.CapsuleLinear` it runs in one fused op that holds no votes.
    """

    takes_bias = True

    def __init__(self, iterations: Iterations = 3, leaky: bool = False, gradient: str = "all") -> None:
        super().__init__(iterations=iterations, leaky=leaky, gradient=gradient)
        RoutingOptions(iterations, leaky, gradient)  # an error now, not at the first call
        self.leaky = leaky
        if leaky:
            self.normalizes = "nothing"

    @property
    def options(self) -> RoutingOptions:
        return RoutingOptions(self.settings["iterations"], self.leaky, self.settings["gradient"])

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
        how = self.settings["iterations"], bias, self.leaky, mask, self.settings["gradient"]
        if return_trace:
            capsules, trace = ops.dynamic_routing(votes, *how, return_trace=True)
            return RoutingOutput(capsules, ops.capsule_lengths(capsules), trace)
        capsules = ops.dynamic_routing(votes, *how)
        return RoutingOutput(capsules, ops.capsule_lengths(capsules))


@register_routing("leaky")
class LeakyRouting(DynamicRouting):
    """Dynamic routing in which part of every vote may go to none of the parents."""

    normalizes = "nothing"

    def __init__(self, iterations: Iterations = 3, gradient: str = "all") -> None:
        super().__init__(iterations, leaky=True, gradient=gradient)
        del self.settings["leaky"]  # the name says it


class _OnVotes(RoutingAlgorithm):
    """A routing whose function takes the settings as they are, with a bias and a mask."""

    takes_bias = True

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
        return self._function(votes, bias=bias, mask=mask, return_trace=return_trace, **self.settings)

    def _function(self, votes: Tensor, **keywords: Any) -> RoutingOutput:
        raise NotImplementedError


@register_routing("fixed-point")
class FixedPointRouting(_OnVotes):
    """The logit is overwritten; see :func:`torchcaps.ops.fixed_point_routing`."""

    def __init__(self, iterations: Iterations = 3, squash: str = "paper") -> None:
        super().__init__(iterations=iterations, squash=squash)

    def _function(self, votes: Tensor, **keywords: Any) -> RoutingOutput:
        return ops.fixed_point_routing(votes, **keywords)


@register_routing("normalized")
class NormalizedRouting(_OnVotes):
    """Agreement with a centre of unit length; see :func:`torchcaps.ops.normalized_routing`."""

    def __init__(self, iterations: Iterations = 3, squash: str = "paper") -> None:
        super().__init__(iterations=iterations, squash=squash)

    def _function(self, votes: Tensor, **keywords: Any) -> RoutingOutput:
        return ops.normalized_routing(votes, **keywords)


@register_routing("max-min")
class MaxMinRouting(_OnVotes):
    """Coefficients stretched between two bounds; see :func:`torchcaps.ops.max_min_routing`."""

    normalizes = "nothing"
    not_applicable = MappingProxyType(
        {
            "coefficients": "each coefficient lies between the two bounds on its own; they do not sum to 1",
            "one_iteration_averages": "equal logits give the upper bound to every parent, not 1/J",
        }
    )

    def __init__(
        self, iterations: Iterations = 3, lower: Factor = 0.0, upper: Factor = 1.0, squash: str = "paper"
    ) -> None:
        super().__init__(iterations=iterations, lower=lower, upper=upper, squash=squash)
        check_number("lower", lower)
        check_number("upper", upper)
        if not lower < upper:
            raise ValueError(f"max-min routing needs lower < upper, got {lower} and {upper}")

    def _function(self, votes: Tensor, **keywords: Any) -> RoutingOutput:
        return ops.max_min_routing(votes, **keywords)


@register_routing("attention")
class AttentionRouting(_OnVotes):
    """Softmax over the children; see :func:`torchcaps.ops.attention_routing`."""

    normalizes = "children"
    not_applicable = MappingProxyType(
        {
            "coefficients": "the softmax runs over the children, on purpose",
            "one_iteration_averages": "one iteration is the mean over the children, not their sum over J",
        }
    )

    def __init__(self, iterations: Iterations = 3, scale: Factor | None = None, squash: str = "paper") -> None:
        super().__init__(iterations=iterations, scale=scale, squash=squash)

    def _function(self, votes: Tensor, **keywords: Any) -> RoutingOutput:
        return ops.attention_routing(votes, **keywords)


@register_routing("average")
class AverageRouting(_OnVotes):
    """No routing: coefficients 1/J; see :func:`torchcaps.ops.average_routing`."""

    def __init__(self, squash: str = "paper") -> None:
        super().__init__(squash=squash)

    def _function(self, votes: Tensor, **keywords: Any) -> RoutingOutput:
        return ops.average_routing(votes, **keywords)
