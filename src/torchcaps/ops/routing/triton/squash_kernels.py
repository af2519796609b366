"""Between two passes over the children: add the slots up, then squash (Eq. 1) or its gradient; small kernels.

The algebra avoids squares that overflow, as ``torchcaps.ops.squash`` does: with ``n = ‖s‖`` and ``h = √(1+n²)``,
``v = (s/h)(n/h)`` and the gradient is ``n/h² · (g + (1/h² − n²/h²)(ŝ·g) ŝ)`` with ``ŝ = s/n``, and 0 at ``s = 0``.
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


@triton.jit
def _norm_and_hypotenuse(s):
    scale = tl.maximum(tl.max(tl.abs(s), axis=0), 1.0)
    scaled = tl.div_rn(s, scale + tl.zeros_like(s))
    norm = tl.sqrt_rn(tl.sum(scaled * scaled, axis=0)) * scale
    larger, smaller = tl.maximum(norm, 1.0), tl.minimum(norm, 1.0)
    ratio = tl.div_rn(smaller, larger)
    return norm, larger * tl.sqrt_rn(1.0 + ratio * ratio)


@triton.jit(do_not_specialize=SIZES)
def finish_forward_kernel(
    partial_sums,  # [slots, B, J, D] float32
    bias,  # [J, D]; read when BIAS
    agreed_before,  # [B, J, D] float32; read when not UNIFORM
    sums,  # [B, J, D] float32, written
    agreed,  # [B, J, D] float32, written when not LAST: the sum of the outputs of all iterations so far
    capsules,  # [B, J, D], written when LAST
    share,  # the coefficient when UNIFORM
    rows,
    slots,
    J,
    D: tl.constexpr,
    UNIFORM: tl.constexpr,
    LAST: tl.constexpr,
    BIAS: tl.constexpr,
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
    norm, hypotenuse = _norm_and_hypotenuse(s)
    v = tl.div_rn(s, hypotenuse + tl.zeros_like(s)) * tl.div_rn(norm, hypotenuse)
    if LAST:
        tl.store(capsules + row * D + d, v.to(capsules.dtype.element_ty), mask=inside)
    else:
        if not UNIFORM:
            v += tl.load(agreed_before + row * D + d, mask=inside, other=0)
        tl.store(agreed + row * D + d, v, mask=inside)


@triton.jit(do_not_specialize=SIZES)
def finish_backward_kernel(
    grad_capsules,  # [B, J, D]; read when LAST
    partial_pull,  # [slots, B, J, D] float32; read when not LAST
    pull,  # [B, J, D] float32, read and written when not LAST: the gradient of V, which later iterations add to
    sums,  # [B, J, D] float32 of this iteration
    grad_sums,  # [B, J, D] float32, written
    rows,
    slots,
    D: tl.constexpr,
    LAST: tl.constexpr,
    FIRST_PULL: tl.constexpr,  # nothing has been added to ``pull`` yet
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
        if not FIRST_PULL:
            g += tl.load(pull + row * D + d, mask=inside, other=0)
        tl.store(pull + row * D + d, g, mask=inside)
    s = tl.load(sums + row * D + d, mask=inside, other=0)
    norm, hypotenuse = _norm_and_hypotenuse(s)
    direction = tl.div_rn(
        s, tl.maximum(norm, 1e-37) + tl.zeros_like(s)
    )  # a zero vector has no direction, and its gradient is 0 below
    along = tl.sum(direction * g, axis=0)
    cosine, sine = tl.div_rn(1.0, hypotenuse), tl.div_rn(norm, hypotenuse)
    grad = sine * cosine * (g + (cosine * cosine - sine * sine) * along * direction)
    tl.store(grad_sums + row * D + d, grad, mask=inside)


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
