"""The fully connected capsule layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn
from torch.nn import init

from torchcaps import ops
from torchcaps.nn.routing import LayerSizes
from torchcaps.nn.routing.calling import reset_routing, route, routing_for_layer, takes_bias
from torchcaps.nn.routing.fused import fused_capsules, fused_options
from torchcaps.nn.start_values import BIAS_START, CAPSULE_STD, truncated_normal_
from torchcaps.ops import RoutingOutput, RoutingTrace
from torchcaps.ops.routing.checks import check_mask
from torchcaps.ops.routing.options import RoutingOptions

__all__ = ["CapsuleLinear", "Routing"]

Routing = Callable[..., Any]
"""``routing(votes)`` → capsules: votes ``[B, I, J, D]``, capsules ``[B, J, D]``. It gets ``bias=`` if it takes one and
the layer learns one, ``mask=`` when the layer is called with one, and ``return_trace=True`` when a trace is wanted,
which comes after the capsules."""


class CapsuleLinear(nn.Module):
    """Every lower capsule votes for every upper one; a routing decides which votes count.

    Args:
        in_capsules: I, the number of lower capsules; ``None`` shares the weights, so any number of them fits.
        out_capsules, in_dim, out_dim: J, P and D.
        in_types: lower capsules of a grid come in so many types at each position (the type changing fastest), and those
            of one type share their weights; I is a multiple of it, and with ``in_capsules=None`` any multiple fits.
        routing: a name of :func:`torchcaps.list_routings`, a name with settings such as
            ``{"name": "em", "iterations": 2}``, a :class:`RoutingAlgorithm`, or a function of your own on votes (see
            :data:`Routing`); :func:`torchcaps.testing.check_routing` tells whether it is sound. Where ``layer.fused``
            is not ``None``, one op does its work, and hooks on ``layer.routing`` hear of traces only; put them on the
            layer.
        iterations, leaky, gradient: of the routing, where it has them and its settings do not say otherwise; see
            :func:`torchcaps.ops.dynamic_routing`.
        bias: learn a bias inside the routing loop, as the authors' code does; only for routings that take one.
        backend: see :func:`torchcaps.ops.capsule_linear`.

    Shape:
        ``[B, I, P]``, mask ``[B, I]`` or ``[I]``, activations ``[B, I]`` → ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import nn
        >>> layer = nn.CapsuleLinear(1152, 10, in_dim=8, out_dim=16)
        >>> layer(torch.randn(2, 1152, 8)).shape
        torch.Size([2, 10, 16])
        >>> layer = nn.CapsuleLinear(7, 3, in_dim=8, out_dim=16, routing={"name": "em", "iterations": 2})
        >>> layer(torch.randn(2, 7, 8), full=True).activations.shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        in_capsules: int | None,
        out_capsules: int,
        in_dim: int,
        out_dim: int,
        routing: str | Mapping[str, Any] | Routing = "dynamic",
        iterations: int = 3,
        bias: bool = True,
        leaky: bool = False,
        gradient: str = "all",
        backend: str = "auto",
        in_types: int | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"out_capsules": out_capsules, "in_dim": in_dim, "out_dim": out_dim}
        if in_capsules is not None:
            sizes["in_capsules"] = in_capsules
        if in_types is not None:
            sizes["in_types"] = in_types
        for name, value in sizes.items():
            if value < 1:
                raise ValueError(f"CapsuleLinear needs {name} ≥ 1, got {value}")
        if in_types is not None and in_capsules is not None and in_capsules % in_types:
            raise ValueError(f"{in_capsules} lower capsules are not a multiple of {in_types} types")
        self.in_capsules, self.in_types = in_capsules, in_types
        self.routing: Routing = routing_for_layer(
            routing,
            LayerSizes(in_capsules, out_capsules, in_dim, out_dim, device, dtype),
            RoutingOptions(iterations, leaky, gradient),
        )
        self.backend = backend
        different = in_capsules if in_types is None else in_types  # transformations for each upper capsule
        shape = (out_capsules, out_dim, in_dim)
        self.weight = nn.Parameter(
            torch.empty(shape if different is None else (different, *shape), device=device, dtype=dtype)
        )
        bias = bias and takes_bias(self.routing)
        self.bias = nn.Parameter(torch.empty(out_capsules, out_dim, device=device, dtype=dtype)) if bias else None
        self._start()
        if self.routing is not routing:  # an object keeps the values that it came with
            reset_routing(self.routing)

    def reset_parameters(self) -> None:
        """Draw new start values, those of the routing, too."""
        self._start()
        reset_routing(self.routing)

    def _start(self) -> None:
        """Start values of the authors' code."""
        truncated_normal_(self.weight, CAPSULE_STD)
        if self.bias is not None:
            init.constant_(self.bias, BIAS_START)

    @property
    def fused(self) -> RoutingOptions | None:
        """The options of the one op that forms and routes votes, a few at a time or none at all; none without it."""
        # Asked at each call, so that a routing may be replaced or given other settings.
        return fused_options(self.routing)

    @overload
    def forward(
        self, u: Tensor, mask: Tensor | None = ..., activations: Tensor | None = ..., *, full: Literal[False] = ...
    ) -> Tensor: ...
    @overload
    def forward(
        self, u: Tensor, mask: Tensor | None = ..., activations: Tensor | None = ..., *, full: Literal[True]
    ) -> RoutingOutput: ...
    def forward(
        self, u: Tensor, mask: Tensor | None = None, activations: Tensor | None = None, *, full: bool = False
    ) -> Tensor | RoutingOutput:
        """Upper capsules, or with ``full`` also their activations.

        ``activations`` say how present each lower capsule is, for routings that ask for it; without them their
        lengths do.
        """
        if self.fused is None:
            out = self._route(u, mask, activations, return_trace=False)
            return out if full else out.capsules
        capsules = fused_capsules(self.routing, u, self.weights_for(u.shape[1]), self.bias, mask, self.backend)
        return RoutingOutput(capsules, ops.capsule_lengths(capsules)) if full else capsules

    def trace(self, u: Tensor, mask: Tensor | None = None) -> tuple[Tensor, RoutingTrace]:
        """The same as a call, with everything that happened inside the routing."""
        out = self.traced(u, mask)
        assert out.trace is not None
        return out.capsules, out.trace

    def traced(self, u: Tensor, mask: Tensor | None = None, activations: Tensor | None = None) -> RoutingOutput:
        """Capsules, activations and trace."""
        return self._route(u, mask, activations, return_trace=True)

    def _route(self, u: Tensor, mask: Tensor | None, activations: Tensor | None, return_trace: bool) -> RoutingOutput:
        if mask is not None:
            mask = check_mask(mask, u.shape[0], u.shape[1])
            u = u.masked_fill(~mask.unsqueeze(2), 0)  # so that NaN cannot reach the weights
        return route(self.routing, self.votes(u), u, activations, mask, self.bias, return_trace)

    def votes(self, u: Tensor) -> Tensor:
        """What every lower capsule predicts of every upper one, ``[B, I, P]`` → ``[B, I, J, D]``."""
        return ops.votes(u, self.weights_for(u.shape[1]))

    def weights_for(self, in_capsules: int) -> Tensor:
        """The transformations of so many lower capsules, ``[I, J, D, P]``; ``[J, D, P]`` where all share one."""
        if self.in_types is None:
            return self.weight
        if self.in_capsules not in (None, in_capsules):
            raise ValueError(
                f"the layer is for {self.in_capsules} lower capsules, got {in_capsules}; in_capsules=None takes any "
                f"multiple of {self.in_types} types"
            )
        if in_capsules % self.in_types:
            raise ValueError(f"{in_capsules} lower capsules are not a multiple of {self.in_types} types")
        return self.weight.repeat(in_capsules // self.in_types, 1, 1, 1)

    def extra_repr(self) -> str:
        J, D, P = self.weight.shape[-3:]
        I = "any" if self.weight.ndim == 3 else f"{'' if self.in_types is None else 'n×'}{self.weight.shape[0]}"
        name = getattr(self.routing, "name", None) or getattr(self.routing, "__name__", self.routing)
        return f"{I}×{P} → {J}×{D}, routing={name}, bias={self.bias is not None}"
