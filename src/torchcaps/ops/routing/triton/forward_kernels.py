"""Forward: the softmax denominators of all children, then the weighted sums of the votes; README.md has the algebra.

Neither kernel forms a vote. With ``y = W_ijᵀ V_j`` the logit is ``y · u_i``, and ``Σ_i c_ij W_ij u_i`` is a matrix
product of the scaled children ``c_ij u_i`` with the weight.
"""

# mypy: ignore-errors
# The bodies below are Triton's language, whose values have no Python types.

from __future__ import annotations

import triton
import triton.language as tl

from torchcaps.ops.routing.triton.pieces import (
    SIZES,
    add_compensated,
    add_dimensions,
    as_operand,
    coupling_of,
    examples,
    exponential,
    load_children,
    load_normaliser,
    load_parent,
    load_weight,
    lower_columns,
    project,
    repeat_over_dimensions,
    store_normaliser,
)

__all__ = ["normaliser_kernel", "weighted_sum_kernel"]


@triton.jit(do_not_specialize=SIZES)
def normaliser_kernel(
    u,  # [B, I, P]
    weight,  # [I, J, D, P], or [J, D, P] when SHARED
    agreed,  # [B, J, D] float32, the sum V of the outputs so far
    normaliser,  # [B, 2, I] float32, written: what the softmax of each child needs
    B,
    I,
    J,
    D: tl.constexpr,
    P: tl.constexpr,
    SHARED: tl.constexpr,
    LEAKY: tl.constexpr,
    COMPUTE: tl.constexpr,
    PRECISION: tl.constexpr,
    SPLIT: tl.constexpr,
    BT: tl.constexpr,
    TI: tl.constexpr,
    DP: tl.constexpr,
    PP: tl.constexpr,
):
    blocks = tl.cdiv(B, BT)
    tile = tl.program_id(0) // blocks  # neighbours share the weights of a tile
    b, b_inside = examples(tl.program_id(0) % blocks, B, BT)
    i, p, n_inside = lower_columns(tile, I, P, TI, PP)
    children = load_children(u, b, b_inside, i, p, n_inside, I, P).to(tl.float32)
    if LEAKY:  # "none of the above" has logit 0
        highest = tl.zeros((BT, TI), tl.float32)
        total = tl.full((BT, TI), 1.0, tl.float32)
    else:
        highest = tl.full((BT, TI), float("-inf"), tl.float32)
        total = tl.zeros((BT, TI), tl.float32)
    for j in range(J):
        w = as_operand(load_weight(weight, i, p, n_inside, j, J, D, P, SHARED, DP), COMPUTE, PRECISION)
        seen = project(load_parent(agreed, b, b_inside, j, J, D, DP), w, PRECISION, SPLIT)
        logit = add_dimensions(seen * children, BT, TI, PP)
        # A running sum relative to the running maximum; one exponential serves both cases.
        ahead = logit - highest
        ratio = exponential(-tl.abs(ahead), PRECISION)
        total = tl.where(ahead > 0, total * ratio + 1.0, total + ratio)
        highest = tl.maximum(highest, logit)
    store_normaliser(normaliser, highest, total, b, b_inside, tile, I, TI, PRECISION)


@triton.jit(do_not_specialize=SIZES)
def weighted_sum_kernel(
    u,
    weight,
    agreed,  # not read when UNIFORM
    normaliser,  # [B, 2, I] float32; not read when UNIFORM
    partial_sums,  # [slots, B, J, D] float32, written: Σ over the children of a slot of c_ij û_ij
    B,
    I,
    tiles_per_slot,
    J,
    D: tl.constexpr,
    P: tl.constexpr,
    SHARED: tl.constexpr,
    UNIFORM: tl.constexpr,  # first iteration: every c_ij is the same, and its value is multiplied in later
    COMPUTE: tl.constexpr,
    PRECISION: tl.constexpr,
    SPLIT: tl.constexpr,
    BT: tl.constexpr,
    TI: tl.constexpr,
    DP: tl.constexpr,
    PP: tl.constexpr,
):
    blocks = tl.cdiv(B, BT)
    j = tl.program_id(0) // blocks % J
    slot = tl.program_id(0) // blocks // J
    b, b_inside = examples(tl.program_id(0) % blocks, B, BT)
    if not UNIFORM:
        parent = load_parent(agreed, b, b_inside, j, J, D, DP)
    sums = tl.zeros((BT, DP), tl.float32)
    lost = tl.zeros((BT, DP), tl.float32)
    for step in range(tiles_per_slot):
        tile = slot * tiles_per_slot + step
        i, p, n_inside = lower_columns(tile, I, P, TI, PP)
        children = load_children(u, b, b_inside, i, p, n_inside, I, P)
        w = as_operand(load_weight(weight, i, p, n_inside, j, J, D, P, SHARED, DP), COMPUTE, PRECISION)
        if UNIFORM:
            scaled = as_operand(children, COMPUTE, PRECISION)
        else:
            children = children.to(tl.float32)
            logit = add_dimensions(project(parent, w, PRECISION, SPLIT) * children, BT, TI, PP)
            highest, factor = load_normaliser(normaliser, b, b_inside, tile, I, TI, PRECISION)
            coupling = coupling_of(logit, highest, factor, PRECISION)
            scaled = as_operand(repeat_over_dimensions(coupling, BT, TI, PP) * children, COMPUTE, PRECISION)
        if PRECISION == "ieee":  # thousands of children in one order would lose more than plain PyTorch's blocks do
            votes = tl.dot(scaled, tl.trans(w), input_precision=PRECISION)
            sums, lost = add_compensated(sums, lost, votes)
        else:
            sums = tl.dot(scaled, tl.trans(w), sums, input_precision=PRECISION)
    d = tl.arange(0, DP)
    offsets = (slot * B + b)[:, None] * (J * D) + j * D + d[None, :]
    tl.store(partial_sums + offsets, sums, mask=b_inside[:, None] & (d < D)[None, :])
