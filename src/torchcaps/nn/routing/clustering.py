"""Routings by clustering: k-means, EM and variational Bayes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from torchcaps import ops
from torchcaps.nn.routing.base import LayerSizes, RoutingAlgorithm
from torchcaps.nn.routing.registry import register_routing
from torchcaps.ops import RoutingOutput
from torchcaps.ops.routing.checks import check_number
from torchcaps.ops.routing.family.k_means import DISTANCES
from torchcaps.ranges import Factor, Iterations, Positive

__all__ = ["EMRouting", "KMeansRouting", "VBRouting"]

A_MEAN = "the capsule is a weighted mean of the votes, not a squashed sum"


@register_routing("k-means")
class KMeansRouting(RoutingAlgorithm):
    """Soft k-means; see :func:`torchcaps.ops.k_means_routing`."""

    not_applicable: Mapping[str, str] = MappingProxyType(
        {
            "coefficients": f"{A_MEAN}: they cannot be read off it; the trace shows that they sum to 1",
            "one_iteration_averages": "one iteration is the mean over the children, not their sum over J",
        }
    )

    def __init__(
        self,
        iterations: Iterations = 3,
        distance: str = "euclidean",
        temperature: Factor = 10.0,
        squash: str = "paper",
    ) -> None:
        super().__init__(iterations=iterations, distance=distance, temperature=temperature, squash=squash)
        if distance not in DISTANCES:
            raise ValueError(f"unknown distance {distance!r}; choose 'euclidean' or 'inner'")
        check_number("temperature", temperature)
        if distance == "inner":
            self.not_applicable = {}  # a proxy as an attribute of its own could not be copied with the network

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
        return ops.k_means_routing(votes, mask=mask, return_trace=return_trace, **self.settings)


class _Mixture(RoutingAlgorithm):
    """A mixture of Gaussians whose parents learn what it takes to be active.

    Args:
        out_capsules: J.
    """

    _function: ClassVar[Callable[..., RoutingOutput]]
    uses_activations = True
    squashes = False
    not_applicable = MappingProxyType(
        {
            "length_below_one": f"{A_MEAN}; its presence is the activation",
            "coefficients": f"{A_MEAN}: they cannot be read off it; the trace shows that they sum to 1",
            "one_iteration_averages": A_MEAN,
            "rotation": "the covariance is diagonal, so the axes of a capsule are told apart",
        }
    )

    def __init__(
        self,
        out_capsules: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        check_number("inverse_temperature", settings["inverse_temperature"])
        self.beta_a = nn.Parameter(torch.empty(out_capsules, device=device, dtype=dtype))
        self.beta_u = nn.Parameter(torch.empty(out_capsules, device=device, dtype=dtype))
        self.reset_parameters()

    @classmethod
    def for_layer(cls, sizes: LayerSizes, **settings: Any) -> Self:
        return cls(sizes.out_capsules, device=sizes.device, dtype=sizes.dtype, **settings)

    def reset_parameters(self) -> None:
        """Both β start at 0: a parent is as likely present as absent when its votes spread by 1."""
        nn.init.zeros_(self.beta_a)
        nn.init.zeros_(self.beta_u)

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
        return self._function(
            votes, self.beta_a, self.beta_u, activations, mask=mask, return_trace=return_trace, **self.settings
        )


@register_routing("em")
class EMRouting(_Mixture):
    """EM routing with learned β_a and β_u; see :func:`torchcaps.ops.em_routing`.

    The costs are standardised by default, so that they do not grow with the size of the layer. The paper's own formula
    is ``standardize=False`` with a λ of about 0.01. The λ here is provisional, see ``docs/routing.md``.
    """

    _function = staticmethod(ops.em_routing)

    def __init__(
        self,
        out_capsules: int,
        iterations: Iterations = 3,
        inverse_temperature: Factor = 10.0,
        variance_floor: Positive = 1e-4,
        standardize: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            out_capsules,
            device=device,
            dtype=dtype,
            iterations=iterations,
            inverse_temperature=inverse_temperature,
            variance_floor=variance_floor,
            standardize=standardize,
        )
        check_number("variance_floor", variance_floor, above=0)


@register_routing("vb")
class VBRouting(_Mixture):
    """Variational Bayes routing with learned offsets; see :func:`torchcaps.ops.vb_routing`.

    The entropies are standardised by default; the paper's own formula is ``standardize=False`` with a λ of 1. The λ
    here is provisional, see ``docs/routing.md``.
    """

    _function = staticmethod(ops.vb_routing)

    def __init__(
        self,
        out_capsules: int,
        iterations: Iterations = 3,
        prior_scatter: Positive = 1.0,
        inverse_temperature: Factor = 1.5,
        standardize: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            out_capsules,
            device=device,
            dtype=dtype,
            iterations=iterations,
            prior_scatter=prior_scatter,
            inverse_temperature=inverse_temperature,
            standardize=standardize,
        )
        check_number("prior_scatter", prior_scatter, above=0)
