"""From tensors to kernel launches: the passes of the forward and of the backward, and the memory between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.routing.triton.backward_kernels import child_gradient_kernel, weight_gradient_kernel
from torchcaps.ops.routing.triton.forward_kernels import normaliser_kernel, weighted_sum_kernel
from torchcaps.ops.routing.triton.squash_kernels import (
    bias_gradient_kernel,
    finish_backward_kernel,
    finish_forward_kernel,
)
from torchcaps.ops.routing.triton.tiles import Tile, Tiles, choose_tiles, next_power_of_two, slots_for
from torchcaps.ops.triton_support import on_device

__all__ = ["Saved", "route", "route_backward"]

MOST_SLOTS = 128
SLOT_BLOCK = 64  # slots that are added up at a time


class Saved(NamedTuple):
    """What the backward pass needs besides the inputs; R is the number of iterations."""

    sums: Tensor  # [R, B, J, D] float32
    agreed: Tensor  # [R−1, B, J, D] float32, what the votes of iterations 2 … R are compared with
    normalisers: Tensor  # [R−1, B, 2, I] float32, of iterations 2 … R


@dataclass(frozen=True)
class Problem:
    """Sizes and choices, unpacked once for all launches."""

    B: int
    I: int
    J: int
    D: int
    P: int
    shared: bool
    share: float  # the coefficient of the first iteration
    precision: str
    compute: Any
    split: bool
    tiles: Tiles

    @classmethod
    def of(cls, u: Tensor, weight: Tensor, leaky: bool, tf32: bool, tiles: Tiles | None = None) -> Problem:
        (B, I, P), (J, D) = u.shape, weight.shape[-3:-1]
        half = weight.dtype == torch.bfloat16 and u.is_cuda  # the interpreter cannot multiply bfloat16
        # float16 cannot hold small gradients; tf32 has its precision and the range of float32.
        tf32 = tf32 or weight.dtype == torch.float16
        return cls(
            B, I, J, D, P,
            shared=weight.ndim == 3,
            share=1 / (J + int(leaky)),
            precision="tf32" if tf32 or half else "ieee",
            compute=tl.bfloat16 if half else tl.float32,
            split=half,
            tiles=tiles or choose_tiles(B, D, exact=not (half or tf32)),
        )  # fmt: skip

    @property
    def padded_p(self) -> int:
        return max(8, next_power_of_two(self.P))

    @property
    def padded_d(self) -> int:
        return max(16, next_power_of_two(self.D))

    def children(self, tile: Tile) -> int:
        """Children in a tile."""
        return max(1, tile.columns // self.padded_p)

    def blocks(self, tile: Tile) -> int:
        return -(-self.B // tile.examples)

    def tiles_of(self, tile: Tile) -> int:
        return -(-self.I // self.children(tile))

    def arguments(self, tile: Tile) -> dict[str, Any]:
        """The compile-time arguments of every kernel that goes over the children."""
        return {
            "J": self.J, "D": self.D, "P": self.P, "SHARED": self.shared,
            "COMPUTE": self.compute, "PRECISION": self.precision, "SPLIT": self.split,
            "BT": tile.examples, "TI": self.children(tile), "DP": self.padded_d, "PP": self.padded_p,
            "num_warps": tile.warps, "num_stages": tile.stages,
        }  # fmt: skip


def _finish_arguments(options: RoutingOptions, J: int, D: int) -> dict[str, Any]:
    """What the kernels between two passes need to know of the centre and of the squash."""
    total, direction = options.centre == "total", options.centre == "direction"
    return {
        "scale": options.total_scale(J, D) if total else options.sharpness if direction else 0.0,
        "ADD_UP": options.centre == "sum", "DIRECTION": direction, "TOTAL": total, "SQUASHED": options.squashed,
    }  # fmt: skip


def route(
    u: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    options: RoutingOptions,
    tf32: bool,
    tiles: Tiles | None = None,
) -> tuple[Tensor, Saved]:
    """``u`` ``[B, I, P]``, ``weight`` ``[I, J, D, P]`` or ``[J, D, P]``, both contiguous → capsules ``[B, J, D]``."""
    problem = Problem.of(u, weight, options.leaky, tf32, tiles)
    B, I, J, D, iterations = problem.B, problem.I, problem.J, problem.D, options.iterations
    finish = _finish_arguments(options, J, D)
    scratch: dict[str, Any] = {"dtype": torch.float32, "device": u.device}
    capsules = torch.empty(B, J, D, dtype=u.dtype if options.squashed else torch.float32, device=u.device)
    saved = Saved(
        torch.empty(iterations, B, J, D, **scratch),
        torch.empty(iterations - 1, B, J, D, **scratch),
        torch.empty(iterations - 1, B, 2, I, **scratch),
    )
    if B == 0:
        return capsules, saved
    tile = problem.tiles.weighted_sum
    slots, per_slot = slots_for(problem.tiles_of(tile), problem.blocks(tile) * J, MOST_SLOTS)
    partial_sums = torch.empty(slots, B, J, D, **scratch)
    with on_device(u.device):
        for r in range(iterations):
            uniform = r == 0
            agreed = partial_sums if uniform else saved.agreed[r - 1]  # a pointer that is not read when uniform
            normaliser = partial_sums if uniform else saved.normalisers[r - 1]
            if not uniform:
                normaliser_tile = problem.tiles.normaliser
                normaliser_kernel[(problem.blocks(normaliser_tile) * problem.tiles_of(normaliser_tile),)](
                    u, weight, agreed, normaliser, B, I, LEAKY=options.leaky, **problem.arguments(normaliser_tile)
                )
            weighted_sum_kernel[(problem.blocks(tile) * slots * J,)](
                u, weight, agreed, normaliser, partial_sums, B, I, per_slot,
                UNIFORM=uniform, **problem.arguments(tile),
            )  # fmt: skip
            last = r == iterations - 1
            finish_forward_kernel[(B * J,)](
                partial_sums, partial_sums if bias is None else bias, agreed, saved.sums[r],
                partial_sums if last else saved.agreed[r], capsules,
                problem.share, rows=B * J, slots=slots,
                J=J, D=D, UNIFORM=uniform, LAST=last, BIAS=bias is not None, **finish,
                DP=problem.padded_d, SLOT_BLOCK=SLOT_BLOCK, num_warps=1,
            )  # fmt: skip
    return capsules, saved


def route_backward(
    u: Tensor,
    weight: Tensor,
    saved: Saved,
    grad_capsules: Tensor,
    options: RoutingOptions,
    tf32: bool,
    tiles: Tiles | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of ``u``, of ``weight`` and of the bias (float32 ``[J, D]``)."""
    problem = Problem.of(u, weight, options.leaky, tf32, tiles)
    all_iterations, finish = options.gradient == "all", _finish_arguments(options, problem.J, problem.D)
    B, I, J, D, P = problem.B, problem.I, problem.J, problem.D, problem.P
    R = len(saved.sums)
    lowest = 0 if all_iterations else R - 1  # the first iteration that gets a gradient
    scratch: dict[str, Any] = {"dtype": torch.float32, "device": u.device}
    grad_u, grad_weight = torch.empty_like(u), torch.empty_like(weight)
    if B == 0:
        return grad_u, grad_weight.zero_(), torch.zeros(J, D, **scratch)
    tile = problem.tiles.weight_gradient
    slots, per_slot = slots_for(problem.tiles_of(tile), J, MOST_SLOTS)
    passes = R - lowest
    wide_u = grad_u if u.dtype == torch.float32 or passes == 1 else torch.empty(B, I, P, **scratch)
    if problem.shared:
        wide_weight = grad_weight_out = torch.empty(slots, J, D, P, **scratch)
    else:
        grad_weight_out = grad_weight
        in_place = weight.dtype == torch.float32 or passes == 1
        wide_weight = grad_weight if in_place else torch.empty(weight.shape, **scratch)
    grad_sums = torch.empty(passes, B, J, D, **scratch)
    mean = torch.empty(B, I, **scratch)
    pull, partial_pull = torch.empty(B, J, D, **scratch), torch.empty(slots, B, J, D, **scratch)
    with on_device(u.device):
        for r in reversed(range(lowest, R)):
            last, uniform = r == R - 1, r == 0
            g = grad_sums[r - lowest]
            finish_backward_kernel[(B * J,)](
                grad_capsules, partial_pull, pull, saved.sums[r], g, rows=B * J, slots=slots,
                D=D, LAST=last, FIRST_PULL=r == R - 2, **finish, DP=problem.padded_d,
                SLOT_BLOCK=SLOT_BLOCK, num_warps=1,
            )  # fmt: skip
            agreed = g if uniform else saved.agreed[r - 1]
            normaliser = mean if uniform else saved.normalisers[r - 1]
            flags = {"UNIFORM": uniform, "LOGITS": all_iterations and not uniform, "ACCUMULATE": not last}
            done = r == lowest
            child_tile = problem.tiles.child_gradient
            child_gradient_kernel[(problem.blocks(child_tile) * problem.tiles_of(child_tile),)](
                u, weight, agreed, g, normaliser, mean, wide_u, grad_u if done else wide_u, problem.share, B, I,
                **flags, **problem.arguments(child_tile),
            )  # fmt: skip
            weight_gradient_kernel[(slots * J,)](
                u, weight, agreed, g, normaliser, mean, wide_weight, grad_weight_out if done else wide_weight,
                partial_pull, problem.share, B, I, per_slot,
                **flags, **problem.arguments(tile),
            )  # fmt: skip
        grad_bias = torch.empty(J, D, **scratch)
        bias_gradient_kernel[(J,)](
            grad_sums, grad_bias, passes * B, J, D=D, DP=problem.padded_d, ROW_BLOCK=128, num_warps=8
        )
    if problem.shared:
        grad_weight = wide_weight.sum(dim=0).to(weight.dtype)
    return grad_u, grad_weight, grad_bias
