"""Convolutional capsules: routing within the window of a kernel, the same weights at every position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import init

from torchcaps.nn.linear import Routing
from torchcaps.nn.routing import LayerSizes
from torchcaps.nn.routing.calling import reset_routing, route, routing_for_layer, takes_bias
from torchcaps.nn.start_values import BIAS_START, CAPSULE_STD, truncated_normal_
from torchcaps.ops import RoutingOutput
from torchcaps.ops.conv_votes import conv_votes, coordinate_offsets, gather_taps, grid_votes, taps_inside
from torchcaps.ops.routing.options import RoutingOptions

__all__ = ["ConvCapsules"]

AROUND_IDENTITY = 0.3  # matrices start near the identity: the pose of a part is a first guess at that of the whole


class ConvCapsules(nn.Module):
    """Each upper position hears the lower capsules under its kernel; any routing decides.

    Args:
        in_types, out_types: kinds of capsules at each position; with K×K taps, I is K²·in_types and J is out_types.
        in_dim, out_dim: P and D.
        kernel_size: K; ``None`` takes the whole grid at once, with one transformation for each pair of types shared by
            all positions. The result has no grid then: these are class capsules.
        stride: of the kernel.
        padding: ``"valid"``, or ``"same"`` for ⌈size / stride⌉ positions; taps beside the grid are masked.
        pose: ``"vector"`` transforms by a D×P matrix. ``"matrix"`` takes a capsule as an m×m matrix, as of EM routing,
            and multiplies it by one; then P = D = m².
        coordinate_addition: add the scaled place of a child, in the kernel or in the grid, to two components of its
            votes, so that shared weights do not lose it.
        routing, iterations, leaky, gradient, bias: as in :class:`CapsuleLinear`.

    Shape:
        capsules ``[B, H, W, C, P]``, activations ``[B, H, W, C]`` → capsules ``[B, H', W', J, D]`` and activations
        ``[B, H', W', J]``; ``[B, J, D]`` and ``[B, J]`` for ``kernel_size=None``.

    Example:
        >>> import torch
        >>> from torchcaps import nn
        >>> layer = nn.ConvCapsules(8, 16, 16, 16, kernel_size=3, stride=2, pose="matrix", routing="em")
        >>> out = layer(torch.randn(2, 7, 7, 8, 16), torch.rand(2, 7, 7, 8))
        >>> out.capsules.shape, out.activations.shape
        (torch.Size([2, 3, 3, 16, 16]), torch.Size([2, 3, 3, 16]))
    """

    def __init__(
        self,
        in_types: int,
        out_types: int,
        in_dim: int,
        out_dim: int,
        kernel_size: int | None = 3,
        stride: int = 1,
        padding: str = "valid",
        pose: str = "vector",
        routing: str | Mapping[str, Any] | Routing = "dynamic",
        iterations: int = 3,
        bias: bool = True,
        leaky: bool = False,
        gradient: str = "all",
        coordinate_addition: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        sizes = {"in_types": in_types, "out_types": out_types, "in_dim": in_dim, "out_dim": out_dim, "stride": stride}
        for name, value in {**sizes, "kernel_size": 1 if kernel_size is None else kernel_size}.items():
            if value < 1:
                raise ValueError(f"ConvCapsules needs {name} ≥ 1, got {value}")
        if padding not in ("valid", "same"):
            raise ValueError(f"unknown padding {padding!r}; choose 'valid' or 'same'")
        if pose not in ("vector", "matrix"):
            raise ValueError(f"unknown pose {pose!r}; choose 'vector' or 'matrix'")
        side = round(in_dim**0.5)
        if pose == "matrix" and not side**2 == in_dim == out_dim:
            raise ValueError(f"matrix poses need in_dim = out_dim = m², such as 16; got {in_dim} and {out_dim}")
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.pose, self.coordinate_addition = pose, coordinate_addition
        taps = 1 if kernel_size is None else kernel_size**2
        in_capsules = None if kernel_size is None else taps * in_types
        self.routing = routing_for_layer(
            routing,
            LayerSizes(in_capsules, out_types, in_dim, out_dim, device, dtype),
            RoutingOptions(iterations, leaky, gradient),
        )
        matrix = (side, side) if pose == "matrix" else (out_dim, in_dim)
        self.weight = nn.Parameter(torch.empty(taps, in_types, out_types, *matrix, device=device, dtype=dtype))
        bias = bias and takes_bias(self.routing)
        self.bias = nn.Parameter(torch.empty(out_types, out_dim, device=device, dtype=dtype)) if bias else None
        self._start()
        if self.routing is not routing:  # an object keeps the values that it came with
            reset_routing(self.routing)

    def reset_parameters(self) -> None:
        """Draw new start values, those of the routing, too."""
        self._start()
        reset_routing(self.routing)

    def _start(self) -> None:
        """Start so that what flows through many layers keeps its size."""
        truncated_normal_(self.weight, self._start_std())
        if self.pose == "matrix" and not self.weight.is_meta:
            with torch.no_grad():
                self.weight.add_(torch.eye(self.weight.shape[-1], device=self.weight.device))
        if self.bias is not None:
            init.constant_(self.bias, BIAS_START)

    def _start_std(self) -> float:
        taps, C, J, D = self.weight.shape[:4]
        if self.pose == "matrix":
            return AROUND_IDENTITY
        if self.kernel_size is None:
            return CAPSULE_STD
        # The sum of I votes of length 1/2, each with a share of 1/J, has length 1, which is squashed to 1/2 again.
        return 2 * J / float(taps * C * D) ** 0.5

    def grid_shape(self, height: int, width: int) -> tuple[int, int]:
        """Rows and columns of upper capsules for a lower grid of this size."""
        if self.kernel_size is None:
            return 1, 1
        total = sum(self._pad())
        return tuple((size + total - self.kernel_size) // self.stride + 1 for size in (height, width))  # type: ignore[return-value]

    def forward(self, capsules: Tensor, activations: Tensor | None = None, return_trace: bool = False) -> RoutingOutput:
        self._check(capsules, activations)
        if self.kernel_size is None:
            return self._whole_grid(capsules, activations, return_trace)
        taps = gather_taps(capsules, self.kernel_size, self.stride, self._pad())  # [B, H', W', T, C, P]
        B, H, W = taps.shape[:3]
        lower = taps.flatten(0, 2)
        votes = conv_votes(lower, self.weight)  # [B·H'·W', I, J, D]
        if self.coordinate_addition:
            votes = self._add_coordinates(votes, self.kernel_size, self.kernel_size)
        if activations is not None:
            activations = gather_taps(activations, self.kernel_size, self.stride, self._pad()).flatten(0, 2).flatten(1)
        out = route(
            self.routing, votes, lower.flatten(1, 2), activations, self._mask(capsules), self.bias, return_trace
        )
        return RoutingOutput(
            rearrange(out.capsules, "(b h w) j d -> b h w j d", b=B, h=H, w=W),
            rearrange(out.activations, "(b h w) j -> b h w j", b=B, h=H, w=W),
            out.trace,
        )

    def _whole_grid(self, capsules: Tensor, activations: Tensor | None, return_trace: bool) -> RoutingOutput:
        votes = grid_votes(capsules, self.weight.squeeze(0))
        if self.coordinate_addition:
            votes = self._add_coordinates(votes, *capsules.shape[1:3])
        lower = capsules.flatten(1, 3)
        if activations is not None:
            activations = activations.flatten(1)
        return route(self.routing, votes, lower, activations, None, self.bias, return_trace)

    def _add_coordinates(self, votes: Tensor, rows: int, columns: int) -> Tensor:
        offsets = coordinate_offsets(rows, columns, votes.shape[3], self.pose, votes)
        by_type = offsets.repeat_interleave(votes.shape[1] // len(offsets), dim=0, output_size=votes.shape[1])
        return votes + by_type.unsqueeze(1)

    def _pad(self) -> tuple[int, int]:
        """Padding before and after: that of stride 1, so that ⌈size / stride⌉ positions result."""
        if self.padding == "valid" or self.kernel_size is None:
            return 0, 0
        return (self.kernel_size - 1) // 2, self.kernel_size // 2

    def _mask(self, capsules: Tensor) -> Tensor | None:
        if self._pad() == (0, 0) or self.kernel_size is None:
            return None
        B, H, W, C = capsules.shape[:4]
        inside = taps_inside((H, W), self.kernel_size, self.stride, self._pad(), capsules.device)
        return inside[None, :, :, None].expand(B, -1, -1, C).flatten(0, 1).flatten(1)

    def _check(self, capsules: Tensor, activations: Tensor | None) -> None:
        C = self.weight.shape[1]
        P = self.weight.shape[-1] ** 2 if self.pose == "matrix" else self.weight.shape[-1]
        if capsules.ndim != 5 or tuple(capsules.shape[3:]) != (C, P):
            raise ValueError(f"lower capsules must be [B, H, W, {C}, {P}], got {list(capsules.shape)}")
        if activations is not None and activations.shape != capsules.shape[:4]:
            raise ValueError(f"activations must be {list(capsules.shape[:4])}, got {list(activations.shape)}")

    def extra_repr(self) -> str:
        taps, C, J = self.weight.shape[:3]
        name = getattr(self.routing, "name", None) or getattr(self.routing, "__name__", self.routing)
        kernel = "grid" if self.kernel_size is None else f"{self.kernel_size}×{self.kernel_size}"
        return f"{C} → {J} types, {self.pose}, {kernel} of {taps} taps, stride={self.stride}, routing={name}"
