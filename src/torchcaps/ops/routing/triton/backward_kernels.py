"""Backward through one iteration: towards the children, and towards the weights and the outputs before it.

The names follow README.md: ``g_j`` is the gradient of the sum ``s_j`` of this iteration, ``a_ij = û_ij · g_j`` that of
the coefficient, ``ℓ_ij = c_ij (a_ij − Σ_k c_ik a_ik)`` that of the logit. The vote's gradient ``c_ij g_j + ℓ_ij V_j``
is never formed.
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
    load_children,
    load_normaliser,
    load_parent,
    load_weight,
    lower_columns,
    per_child,
    project,
    repeat_over_dimensions,
    weight_offsets,
)

__all__ = ["child_gradient_kernel", "weight_gradient_kernel"]


@triton.jit(do_not_specialize=SIZES)
def child_gradient_kernel(
    u,
    weight,
    agreed,  # [B, J, D] float32, V; not read when UNIFORM
    grad_sums,  # [B, J, D] float32, g
    normaliser,  # [B, 2, I] float32, as the forward pass left it; not read when UNIFORM
    mean,  # [B, I] float32, written when LOGITS: Σ_j c_ij a_ij
    before,  # [B, I, P] float32, the gradient from later iterations; read when ACCUMULATE
    grad_u,  # [B, I, P], written; may be the same memory as ``before``
    share,  # the coefficient when UNIFORM
    B,
    I,
    J,
    D: tl.constexpr,
    P: tl.constexpr,
    SHARED: tl.constexpr,
    UNIFORM: tl.constexpr,
    LOGITS: tl.constexpr,  # whether the gradient flows through the coefficients
    ACCUMULATE: tl.constexpr,
    COMPUTE: tl.constexpr,
    PRECISION: tl.constexpr,
    SPLIT: tl.constexpr,
    BT: tl.constexpr,
    TI: tl.constexpr,
    DP: tl.constexpr,
    PP: tl.constexpr,
):
    blocks = tl.cdiv(B, BT)
    tile = tl.program_id(0) // blocks
    b, b_inside = examples(tl.program_id(0) % blocks, B, BT)
    i, p, n_inside = lower_columns(tile, I, P, TI, PP)
    u_offsets = b[:, None] * (I * P) + (i * P + p)[None, :]
    u_inside = b_inside[:, None] & n_inside[None, :]
    offsets, inside = per_child(b, b_inside, tile, I, TI)
    gradient = tl.zeros((BT, TI * PP), tl.float32)
    lost = tl.zeros((BT, TI * PP), tl.float32)
    if not UNIFORM:
        children = tl.load(u + u_offsets, mask=u_inside, other=0).to(tl.float32)
        highest, factor = load_normaliser(normaliser, b, b_inside, tile, I, TI, PRECISION)
        pull = tl.zeros((BT, TI * PP), tl.float32)  # Σ_j c_ij W_ijᵀ V_j
        mean_so_far = tl.zeros((BT, TI), tl.float32)
    if LOGITS and PRECISION == "ieee":
        # The mean first: taken off afterwards, as below, it cancels digits that float32 products are asked for.
        for j in range(J):
            w = as_operand(load_weight(weight, i, p, n_inside, j, J, D, P, SHARED, DP), COMPUTE, PRECISION)
            seen_gradient = project(load_parent(grad_sums, b, b_inside, j, J, D, DP), w, PRECISION, False)
            seen = project(load_parent(agreed, b, b_inside, j, J, D, DP), w, PRECISION, SPLIT)
            coupling = coupling_of(add_dimensions(seen * children, BT, TI, PP), highest, factor, PRECISION)
            mean_so_far += coupling * add_dimensions(seen_gradient * children, BT, TI, PP)
    for j in range(J):
        w = as_operand(load_weight(weight, i, p, n_inside, j, J, D, P, SHARED, DP), COMPUTE, PRECISION)
        seen_gradient = project(load_parent(grad_sums, b, b_inside, j, J, D, DP), w, PRECISION, False)
        if UNIFORM:
            term = seen_gradient
        else:
            seen = project(load_parent(agreed, b, b_inside, j, J, D, DP), w, PRECISION, SPLIT)
            coupling = coupling_of(add_dimensions(seen * children, BT, TI, PP), highest, factor, PRECISION)
            c = repeat_over_dimensions(coupling, BT, TI, PP)
            if not LOGITS:
                term = c * seen_gradient
            else:
                a = add_dimensions(seen_gradient * children, BT, TI, PP)
                if PRECISION == "ieee":
                    a -= mean_so_far
                else:
                    mean_so_far += coupling * a
                    pull += c * seen
                term = c * (seen_gradient + repeat_over_dimensions(a, BT, TI, PP) * seen)
        if PRECISION == "ieee":
            gradient, lost = add_compensated(gradient, lost, term)
        else:
            gradient += term
    if UNIFORM:
        gradient *= share
    elif LOGITS:
        if PRECISION != "ieee":  # Σ_j ℓ_ij W_ijᵀ V_j needs the mean, known only now
            gradient -= repeat_over_dimensions(mean_so_far, BT, TI, PP) * pull
        tl.store(mean + offsets, mean_so_far, mask=inside)
    if ACCUMULATE:
        gradient += tl.load(before + u_offsets, mask=u_inside, other=0)
    tl.store(grad_u + u_offsets, gradient.to(grad_u.dtype.element_ty), mask=u_inside)


@triton.jit(do_not_specialize=SIZES)
def weight_gradient_kernel(
    u,
    weight,
    agreed,
    grad_sums,
    normaliser,
    mean,  # [B, I] float32; read when LOGITS
    before,  # like grad_weight but float32; read when ACCUMULATE
    grad_weight,  # [I, J, D, P], or [slots, J, D, P] when SHARED, written; may be the same memory as ``before``
    partial_pull,  # [slots, B, J, D] float32, written when LOGITS: Σ over the children of a slot of ℓ_ij û_ij
    share,
    B,
    I,
    tiles_per_slot,
    J,
    D: tl.constexpr,
    P: tl.constexpr,
    SHARED: tl.constexpr,
    UNIFORM: tl.constexpr,
    LOGITS: tl.constexpr,
    ACCUMULATE: tl.constexpr,
    COMPUTE: tl.constexpr,
    PRECISION: tl.constexpr,
    SPLIT: tl.constexpr,
    BT: tl.constexpr,
    TI: tl.constexpr,
    DP: tl.constexpr,
    PP: tl.constexpr,
):
    j = tl.program_id(0) % J
    slot = tl.program_id(0) // J
    d = tl.arange(0, DP)
    gradient = tl.zeros((TI * PP, DP), tl.float32)
    for step in range(tiles_per_slot):
        tile = slot * tiles_per_slot + step
        i, p, n_inside = lower_columns(tile, I, P, TI, PP)
        if not UNIFORM:
            w = as_operand(load_weight(weight, i, p, n_inside, j, J, D, P, SHARED, DP), COMPUTE, PRECISION)
        for block in range(tl.cdiv(B, BT)):
            b, b_inside = examples(block, B, BT)
            children = load_children(u, b, b_inside, i, p, n_inside, I, P)
            g = load_parent(grad_sums, b, b_inside, j, J, D, DP)
            if UNIFORM:
                scaled = as_operand(children, COMPUTE, PRECISION)
            else:
                children = children.to(tl.float32)
                parent = load_parent(agreed, b, b_inside, j, J, D, DP)
                highest, factor = load_normaliser(normaliser, b, b_inside, tile, I, TI, PRECISION)
                logit = add_dimensions(project(parent, w, PRECISION, SPLIT) * children, BT, TI, PP)
                coupling = coupling_of(logit, highest, factor, PRECISION)
                scaled = as_operand(repeat_over_dimensions(coupling, BT, TI, PP) * children, COMPUTE, PRECISION)
            gradient = tl.dot(tl.trans(scaled), as_operand(g, COMPUTE, PRECISION), gradient, input_precision=PRECISION)
            if LOGITS:
                a = add_dimensions(project(g, w, PRECISION, False) * children, BT, TI, PP)
                offsets, inside = per_child(b, b_inside, tile, I, TI)
                grad_logit = coupling * (a - tl.load(mean + offsets, mask=inside, other=0))
                scaled = as_operand(repeat_over_dimensions(grad_logit, BT, TI, PP) * children, COMPUTE, PRECISION)
                gradient = tl.dot(
                    tl.trans(scaled), as_operand(parent, COMPUTE, PRECISION), gradient, input_precision=PRECISION
                )
                pull = tl.dot(scaled, tl.trans(w), input_precision=PRECISION)
                places = partial_pull + ((slot * B + b)[:, None] * (J * D) + j * D + d[None, :])
                pull_inside = b_inside[:, None] & (d < D)[None, :]
                if step > 0:  # the slot is this program's own, so nobody else writes in between
                    pull += tl.load(places, mask=pull_inside, other=0)
                tl.store(places, pull, mask=pull_inside)
        if not SHARED:
            _write_weight_gradient(
                gradient, before, grad_weight, share, i, p, n_inside, j, J, D, P, SHARED, UNIFORM, ACCUMULATE, DP
            )
            gradient = tl.zeros((TI * PP, DP), tl.float32)
        tl.debug_barrier()  # what this step stored, another thread may load in the next
    if SHARED:
        summed = tl.sum(tl.reshape(gradient, (TI, PP, DP)), axis=0)
        p = tl.arange(0, PP)
        rows = slot + tl.zeros((PP,), tl.int64)  # the slot stands where the child stands in a full weight
        _write_weight_gradient(
            summed, before, grad_weight, share, rows, p, p < P, j, J, D, P, False, UNIFORM, ACCUMULATE, DP
        )


@triton.jit
def _write_weight_gradient(
    gradient,
    before,
    grad_weight,
    share,
    i,
    p,
    n_inside,
    j,
    J,
    D: tl.constexpr,
    P: tl.constexpr,
    SHARED: tl.constexpr,
    UNIFORM: tl.constexpr,
    ACCUMULATE: tl.constexpr,
    DP: tl.constexpr,
):
    gradient = tl.trans(gradient)  # [DP, N] as the weight lies in memory
    if UNIFORM:
        gradient *= share
    offsets, inside = weight_offsets(i, p, n_inside, j, J, D, P, SHARED, DP)
    if ACCUMULATE:
        gradient += tl.load(before + offsets, mask=inside, other=0)
    tl.store(grad_weight + offsets, gradient.to(grad_weight.dtype.element_ty), mask=inside)
