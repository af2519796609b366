"""What the kernels share: loading tiles, the two small matrix products, sums over the dimensions of a capsule.

A tile holds BT examples by TI lower capsules, whose padded dimensions lie side by side: ``N = TI · PP`` columns,
column ``n`` is dimension ``n % PP`` of capsule ``n // PP``. Parents are taken one at a time, so J needs no padding.
"""

# mypy: ignore-errors
# The bodies below are Triton's language, whose values have no Python types.

from __future__ import annotations

import triton
import triton.language as tl

__all__ = [
    "SIZES",
    "add_compensated",
    "add_dimensions",
    "as_operand",
    "coupling_of",
    "examples",
    "exponential",
    "load_children",
    "load_normaliser",
    "load_parent",
    "load_weight",
    "lower_columns",
    "per_child",
    "project",
    "repeat_over_dimensions",
    "store_normaliser",
    "weight_offsets",
]

SIZES = ("B", "J", "rows", "slots")
"""Arguments a kernel is not compiled anew for. I stays out, since its divisors decide how wide the loads are, and so
does the number of tiles in a slot: where it is 1, which it often is, the loop over them vanishes.
"""


@triton.jit
def examples(block, B, BT: tl.constexpr):
    """Numbers of the examples of a tile, and which of them exist."""
    b = block * BT + tl.arange(0, BT)
    return b.to(tl.int64), b < B


@triton.jit
def lower_columns(tile, I, P: tl.constexpr, TI: tl.constexpr, PP: tl.constexpr):
    """Capsule and dimension of every column of a tile, and which of them exist."""
    n = tl.arange(0, TI * PP)
    i = tile * TI + n // PP
    p = n % PP
    inside = i < I
    if P != PP:
        inside = inside & (p < P)
    return i.to(tl.int64), p, inside


@triton.jit
def per_child(b, b_inside, tile, I, TI: tl.constexpr):
    """Offsets and mask of one number for each example and lower capsule, ``[BT, TI]``."""
    i = tile * TI + tl.arange(0, TI)
    return b[:, None] * I + i[None, :], b_inside[:, None] & (i < I)[None, :]


@triton.jit
def load_normaliser(normaliser, b, b_inside, tile, I, TI: tl.constexpr, PRECISION: tl.constexpr):
    """The two numbers a child's softmax needs, ``[BT, TI]`` each, from ``[B, 2, I]``; see ``coupling_of``."""
    i = tile * TI + tl.arange(0, TI)
    places = normaliser + (b[:, None] * (2 * I) + i[None, :])
    inside = b_inside[:, None] & (i < I)[None, :]
    first = tl.load(places, mask=inside, other=0)
    return first, tl.load(places + I, mask=inside, other=0) if PRECISION == "ieee" else first


@triton.jit
def store_normaliser(normaliser, highest, total, b, b_inside, tile, I, TI: tl.constexpr, PRECISION: tl.constexpr):
    i = tile * TI + tl.arange(0, TI)
    places = normaliser + (b[:, None] * (2 * I) + i[None, :])
    inside = b_inside[:, None] & (i < I)[None, :]
    if PRECISION == "ieee":
        tl.store(places, highest, mask=inside)
        tl.store(places + I, tl.div_rn(1.0, total), mask=inside)
    else:
        tl.store(places, highest + tl.log(total), mask=inside)


@triton.jit
def coupling_of(logit, normaliser, factor, PRECISION: tl.constexpr):
    """Eq. 3 from the logit, with the child's normaliser.

    One number, the logarithm of the sum, is enough unless products are exact: its rounding scales all coefficients
    of the child, so float32 keeps the maximum and the reciprocal sum apart.
    """
    if PRECISION == "ieee":
        return factor * exponential(logit - normaliser, PRECISION)
    return exponential(logit - normaliser, PRECISION)


@triton.jit
def as_operand(x, COMPUTE: tl.constexpr, PRECISION: tl.constexpr):
    """What a matrix unit is to multiply; it would cut a float32 off to tf32 where rounding halves the error."""
    x = x.to(COMPUTE)
    if PRECISION == "tf32" and x.dtype == tl.float32:
        x = ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)
    return x


@triton.jit
def load_children(u, b, b_inside, i, p, n_inside, I, P: tl.constexpr):
    """Lower capsules ``[BT, N]``."""
    return tl.load(u + b[:, None] * (I * P) + (i * P + p)[None, :], mask=b_inside[:, None] & n_inside[None, :], other=0)


@triton.jit
def weight_offsets(i, p, n_inside, j, J, D: tl.constexpr, P: tl.constexpr, SHARED: tl.constexpr, DP: tl.constexpr):
    """Offsets and mask of ``W_ij`` for the capsules of a tile and one parent, ``[DP, N]``."""
    d = tl.arange(0, DP)
    n = p if SHARED else i * (J * D * P) + p
    offsets = j * (D * P) + d[:, None] * P + n[None, :]
    if D == DP:
        return offsets, tl.broadcast_to(n_inside[None, :], (DP, n_inside.shape[0]))
    return offsets, (d < D)[:, None] & n_inside[None, :]


@triton.jit
def load_weight(weight, i, p, n_inside, j, J, D: tl.constexpr, P: tl.constexpr, SHARED: tl.constexpr, DP: tl.constexpr):
    offsets, inside = weight_offsets(i, p, n_inside, j, J, D, P, SHARED, DP)
    return tl.load(weight + offsets, mask=inside, other=0)


@triton.jit
def load_parent(vectors, b, b_inside, j, J, D: tl.constexpr, DP: tl.constexpr):
    """One vector ``[D]`` of parent j for each example, float32 ``[BT, DP]``."""
    d = tl.arange(0, DP)
    offsets = b[:, None] * (J * D) + j * D + d[None, :]
    return tl.load(vectors + offsets, mask=b_inside[:, None] & (d < D)[None, :], other=0)


@triton.jit
def project(parent, weight, PRECISION: tl.constexpr, SPLIT: tl.constexpr):
    """``W_ijᵀ x_j``, the parent's vector as each child sees it: ``[BT, DP] × [DP, N]`` → float32 ``[BT, N]``.

    SPLIT adds the part that rounding the vector to the weight's dtype cuts off: that rounding would be one error
    common to all children, which no sum averages out.
    """
    high = as_operand(parent, weight.dtype, PRECISION)
    seen = tl.dot(high, weight, input_precision=PRECISION)
    if SPLIT:
        low = (parent - high.to(tl.float32)).to(weight.dtype)
        seen = tl.dot(low, weight, seen, input_precision=PRECISION)
    return seen


@triton.jit
def exponential(x, PRECISION: tl.constexpr):
    """``exp x`` for x ≤ 0; the chip's own is off by several roundings of float32, which only exact products notice."""
    if PRECISION != "ieee":
        return tl.exp(x)
    x = tl.maximum(x, -100.0)
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 0.693359375) + n * 2.12194440e-4  # ln 2 in two parts: the first product is exact
    tail = 1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (1 / 5040))))
    return tl.exp2(n) * (1.0 + (r + r * r * (0.5 + r * tail)))


@triton.jit
def add_compensated(total, lost, addend):
    """``total + addend`` and what its rounding lost, to be given back with the next addend (Kahan's sum)."""
    wanted = addend - lost
    new_total = total + wanted
    return new_total, (new_total - total) - wanted


@triton.jit
def add_dimensions(x, BT: tl.constexpr, TI: tl.constexpr, PP: tl.constexpr):
    """Sum over the dimensions of each lower capsule: ``[BT, N]`` → ``[BT, TI]``."""
    return tl.sum(tl.reshape(x, (BT, TI, PP)), axis=2)


@triton.jit
def repeat_over_dimensions(x, BT: tl.constexpr, TI: tl.constexpr, PP: tl.constexpr):
    """The inverse shape: ``[BT, TI]`` → ``[BT, N]``."""
    return tl.reshape(tl.broadcast_to(x[:, :, None], (BT, TI, PP)), (BT, TI * PP))
