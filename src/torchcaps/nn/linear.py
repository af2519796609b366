"""The fully connected capsule layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import init

from torchcaps import ops
from torchcaps.nn.start_values import BIAS_START, CAPSULE_STD, truncated_normal_
from torchcaps.ops import RoutingTrace
from torchcaps.ops.routing.options import RoutingOptions

__all__ = ["CapsuleLinear", "Routing"]

Routing = Callable[..., Any]
"""``routing(votes)`` → capsules: votes ``[B, I, J, D]``, capsules ``[B, J, D]``. It gets ``bias=`` when the layer has
one, ``mask=`` when the layer is called with one, and ``return_trace=True`` when a trace is wanted."""


class CapsuleLinear(nn.Module):
    """Every lower capsule votes for every upper one; a routing decides which votes count.

    Args:
        in_capsules: I, the number of lower capsules; ``None`` shares the weights, so any number of them fits.
        out_capsules, in_dim, out_dim: J, P and D.
        routing: ``"dynamic"``, or a function of your own on votes (see :data:`Routing`);
            :func:`torchcaps.testing.check_routing` tells whether it is sound.
        iterations, leaky, gradient: of the dynamic routing, see :func:`torchcaps.ops.dynamic_routing`.
        bias: learn a bias inside the routing loop, as the authors' code does.
        backend: see :func:`torchcaps.ops.capsule_linear`.

    Shape:
        ``[B, I, P]``, mask ``[B, I]`` or ``[I]`` → ``[B, J, D]``.

    Example:
        >>> import torch
        >>> from torchcaps import nn
        >>> layer = nn.CapsuleLinear(1152, 10, in_dim=8, out_dim=16)
        >>> layer(torch.randn(2, 1152, 8)).shape
        torch.Size([2, 10, 16])
    """

    def __init__(
        self,
        in_capsules: int | None,
        out_capsules: int,
        in_dim: int,
        out_dim: int,
        routing: str | Routing = "dynamic",
        iterations: int = 3,
        bias: bool = True,
        leaky: bool = False,
        gradient: str = "all",
        backend: str = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"out_capsules": out_capsules, "in_dim": in_dim, "out_dim": out_dim}
        if in_capsules is not None:
            sizes["in_capsules"] = in_capsules
        for name, value in sizes.items():
            if value < 1:
                raise ValueError(f"CapsuleLinear needs {name} ≥ 1, got {value}")
        if isinstance(routing, str) and routing != "dynamic":
            raise ValueError(f"unknown routing {routing!r}; choose 'dynamic' or pass a function on votes [B, I, J, D]")
        self.routing = routing
        self.options = RoutingOptions(iterations, leaky, gradient)
        self.backend = backend
        shape = (out_capsules, out_dim, in_dim) if in_capsules is None else (in_capsules, out_capsules, out_dim, in_dim)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_capsules, out_dim, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start values of the authors' code."""
        truncated_normal_(self.weight, CAPSULE_STD)
        if self.bias is not None:
            init.constant_(self.bias, BIAS_START)

    def forward(self, u: Tensor, mask: Tensor | None = None) -> Tensor:
        if callable(self.routing):
            capsules: Tensor = self.routing(ops.votes(u, self.weight), **self._keywords(mask))
            return capsules
        return ops.capsule_linear(
            u,
            self.weight,
            self.options.iterations,
            self.bias,
            self.options.leaky,
            self.backend,
            mask=mask,
            gradient=self.options.gradient,
        )

    def trace(self, u: Tensor, mask: Tensor | None = None) -> tuple[Tensor, RoutingTrace]:
        """The same as a call, with everything that happened inside the routing."""
        if callable(self.routing):
            result: tuple[Tensor, RoutingTrace] = self.routing(
                ops.votes(u, self.weight), return_trace=True, **self._keywords(mask)
            )
            return result
        return ops.capsule_linear(
            u,
            self.weight,
            self.options.iterations,
            self.bias,
            self.options.leaky,
            return_trace=True,
            mask=mask,
            gradient=self.options.gradient,
        )

    def _keywords(self, mask: Tensor | None) -> dict[str, Tensor]:
        given = {"bias": self.bias, "mask": mask}
        return {name: value for name, value in given.items() if value is not None}

    def extra_repr(self) -> str:
        J, D, P = self.weight.shape[-3:]
        I = "any" if self.weight.ndim == 3 else self.weight.shape[0]
        how = (
            f"iterations={self.options.iterations}, leaky={self.options.leaky}, gradient={self.options.gradient!r}"
            if self.routing == "dynamic"
            else f"routing={getattr(self.routing, '__name__', self.routing)}"
        )
        return f"{I}×{P} → {J}×{D}, {how}, bias={self.bias is not None}"
