"""Between two passes over the children: add the slots up, then squash (Eq. 1) or its gradient; small kernels.

With ``n = ‖s‖`` and ``h² = 1 + n²``, ``v = s n/h²`` and the gradient is ``n/h² (g + (1 − n²)/h² (ŝ·g) ŝ)`` with
``ŝ = s/n``, and 0 at ``s = 0``. Where the votes are compared with a direction of length K instead, it is ``K ŝ`` and
``K/n (g − (ŝ·g) ŝ)``, 0 where n is so small that this would overflow; where they are compared with the sums themselves,
``K s`` and ``K g``. All is in float64: D numbers for each parent cost nothing, their squares cannot overflow, and what
rounding does here would be common to all children.
"""

# mypy: ignore-errors
# The bodies below are Triton's language, whose values have no Python types.

from __future__ import annotations

import triton
import triton.language as tl

from torchcaps.ops.routing.triton.pieces import SIZES

__all__ = ["bias_gradient_kernel", "finish_backward_kernel", "finish_forward_kernel"]


@triton.jit
def _add_slots(partial, row, rows, slots, D: tl.constexpr, DP: tl.constexpr, SLOT_BLOCK: tl.constexpr):
    d = tl.arange(0, DP)
    total = tl.zeros((DP,), tl.float32)
    for first in range(0, slots, SLOT_BLOCK):
        slot = first + tl.arange(0, SLOT_BLOCK)
        inside = (slot < slots)[:, None] & (d < D)[None, :]
        offsets = slot.to(tl.int64)[:, None] * rows * D + row * D + d[None, :]
        total += tl.sum(tl.load(partial + offsets, mask=inside, other=0), axis=0)
    return total


@triton.jit(do_not_specialize=SIZES)
def finish_forward_kernel(
    partial_sums,  # [slots, B, J, D] float32
    bias,  # [J, D]; read when BIAS
    agreed_before,  # [B, J, D] float32; read when ADD_UP and not UNIFORM
    sums,  # [B, J, D] float32, written
    agreed,  # [B, J, D] float32, written when not LAST: V, which the votes are compared with next
    capsules,  # [B, J, D], written when LAST
    share,  # the coefficient when UNIFORM
    scale,  # the length of V when DIRECTION, its ratio to the sums when TOTAL
    rows,
    slots,
    J,
    D: tl.constexpr,
    UNIFORM: tl.constexpr,
    LAST: tl.constexpr,
    BIAS: tl.constexpr,
    ADD_UP: tl.constexpr,  # V is the sum of the outputs of all iterations so far, not the last alone
    DIRECTION: tl.constexpr,  # V has the direction of the sums
    TOTAL: tl.constexpr,  # V is a multiple of the sums
    SQUASHED: tl.constexpr,  # the capsules are; else they are the sums
    DP: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)  # example · J + parent
    d = tl.arange(0, DP)
    inside = d < D
    s = _add_slots(partial_sums, row, rows, slots, D, DP, SLOT_BLOCK)
    if UNIFORM:
        s *= share
    if BIAS:
        s += tl.load(bias + (row % J) * D + d, mask=inside, other=0).to(tl.float32)
    tl.store(sums + row * D + d, s, mask=inside)
    wide = s.to(tl.float64)
    squared = tl.sum(wide * wide, axis=0)
    if DIRECTION and not LAST:
        v = (wide * tl.where(squared > 1e-62, scale / tl.sqrt(tl.maximum(squared, 1e-62)), 0.0)).to(tl.float32)
    elif TOTAL and not LAST:
        v = (wide * scale).to(tl.float32)
    elif LAST and not SQUASHED:
        v = s
    else:
        v = (wide * (tl.sqrt(squared) / (1.0 + squared))).to(tl.float32)
    if LAST:
        tl.store(capsules + row * D + d, v.to(capsules.dtype.element_ty), mask=inside)
    else:
        if ADD_UP and not UNIFORM:
            v += tl.load(agreed_before + row * D + d, mask=inside, other=0)
        tl.store(agreed + row * D + d, v, mask=inside)


@triton.jit(do_not_specialize=SIZES)
def finish_backward_kernel(
    grad_capsules,  # [B, J, D]; read when LAST
    partial_pull,  # [slots, B, J, D] float32; read when not LAST
    pull,  # [B, J, D] float32, read and written when ADD_UP and not LAST: the gradient of V so far
    sums,  # [B, J, D] float32 of this iteration
    grad_sums,  # [B, J, D] float32, written
    scale,
    rows,
    slots,
    D: tl.constexpr,
    LAST: tl.constexpr,
    FIRST_PULL: tl.constexpr,  # nothing has been added to ``pull`` yet
    ADD_UP: tl.constexpr,
    DIRECTION: tl.constexpr,
    TOTAL: tl.constexpr,
    SQUASHED: tl.constexpr,
    DP: tl.constexpr,
    SLOT_BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, DP)
    inside = d < D
    if LAST:
        g = tl.load(grad_capsules + row * D + d, mask=inside, other=0).to(tl.float32)
    else:
        g = _add_slots(partial_pull, row, rows, slots, D, DP, SLOT_BLOCK)
        if ADD_UP:
            if not FIRST_PULL:
                g += tl.load(pull + row * D + d, mask=inside, other=0)
            tl.store(pull + row * D + d, g, mask=inside)
    s = tl.load(sums + row * D + d, mask=inside, other=0)
    wide, wide_g = s.to(tl.float64), g.to(tl.float64)
    squared = tl.sum(wide * wide, axis=0)
    along = tl.sum(wide * wide_g, axis=0) / tl.maximum(squared, 1e-300)  # (ŝ·g)/n; a zero vector gets 0 below
    if DIRECTION and not LAST:
        factor = tl.where(squared > 1e-62, scale / tl.sqrt(tl.maximum(squared, 1e-62)), 0.0)
        grad = factor * (wide_g - along * wide)
    elif TOTAL and not LAST:
        grad = scale * wide_g
    elif LAST and not SQUASHED:
        grad = wide_g
    else:
        factor = tl.sqrt(squared) / (1.0 + squared)
        grad = factor * (wide_g + (1.0 - squared) / (1.0 + squared) * along * wide)
    tl.store(grad_sums + row * D + d, grad.to(tl.float32), mask=inside)


@triton.jit(do_not_specialize=SIZES)
def bias_gradient_kernel(
    grad_sums,  # [rows, J, D] float32, all examples of all iterations
    grad_bias,  # [J, D] float32, written
    rows,
    J,
    D: tl.constexpr,
    DP: tl.constexpr,
    ROW_BLOCK: tl.constexpr,
):
    j = tl.program_id(0)
    d = tl.arange(0, DP)
    inside = d < D
    total = tl.zeros((ROW_BLOCK, DP), tl.float32)
    for first in range(0, rows, ROW_BLOCK):
        row = first + tl.arange(0, ROW_BLOCK).to(tl.int64)
        offsets = row[:, None] * (J * D) + j * D + d[None, :]
        total += tl.load(grad_sums + offsets, mask=(row < rows)[:, None] & inside[None, :], other=0)
    tl.store(grad_bias + j * D + d, tl.sum(total, axis=0), mask=inside)
