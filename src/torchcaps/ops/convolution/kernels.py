"""A channels-last convolution without padding as one matrix product, whose patches are never stored.

What belongs to one example is counted in 32 bits (``support.py`` sees to it), what lies before it in 64.
"""

# mypy: ignore-errors
# The bodies below are Triton's language, whose values have no Python types.

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["add_splits_kernel", "data_gradient_kernel", "forward_kernel"]


@triton.jit
def forward_kernel(
    x,  # [B, H, W, C]
    weight,  # [N, KH, KW, C]
    partial,  # [splits, B·OH·OW, N], written
    M,
    splits,
    H: tl.constexpr,
    W: tl.constexpr,
    C: tl.constexpr,
    OH: tl.constexpr,
    OW: tl.constexpr,
    N: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    STRIDE: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """A tile of positions × output channels; the sum over taps and channels is shared by several programs."""
    columns: tl.constexpr = N // BN
    chunks: tl.constexpr = C // BK
    steps: tl.constexpr = KH * KW * chunks
    program = tl.program_id(0)
    n = program % columns * BN + tl.arange(0, BN)
    split = program // columns % splits
    m = program // columns // splits * BM + tl.arange(0, BM)
    b, position = m // (OH * OW), m % (OH * OW)
    corner = (position // OW * STRIDE * W + position % OW * STRIDE) * C
    origin = b.to(tl.int64) * (H * W * C) + corner
    k = tl.arange(0, BK)
    x_places = x + origin[:, None] + k[None, :]
    w_places = weight + n[None, :] * (KH * KW * C) + k[:, None]
    inside = (m < M)[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(split * steps // splits, (split + 1) * steps // splits):
        tap, chunk = step // chunks, step % chunks
        patch = tl.load(x_places + ((tap // KW * W + tap % KW) * C + chunk * BK), mask=inside, other=0)
        total = tl.dot(patch, tl.load(w_places + step * BK), total)
    places = partial + (split.to(tl.int64) * M + m)[:, None] * N + n[None, :]
    tl.store(places, total.to(partial.dtype.element_ty), mask=inside)


@triton.jit
def add_splits_kernel(
    partial,  # [splits, size] float32
    out,  # [size], written
    size,
    splits,
    BLOCK: tl.constexpr,
):
    """The sum of the splits, in their order, rounded once."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < size
    places = partial + i
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(splits):
        total += tl.load(places, mask=inside, other=0)
        places += size
    tl.store(out + i, total.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _from_the_middle(i, size: tl.constexpr):
    """Place i of the walk middle, right, left, second to the right … over all places of a line."""
    return (size - 1) // 2 + (i + 1) // 2 * (i % 2 * 2 - 1)


@triton.jit
def _inner_first(rank, H: tl.constexpr, W: tl.constexpr, DIAGONALS: tl.constexpr):
    """Position number ``rank`` of a walk over H × W from the middle outwards, along the diagonals i + j = 0, 1, 2 …

    Inner positions have more taps than outer ones, and the programs that start last should be short.
    """
    diagonals = tl.arange(0, DIAGONALS)
    lengths = tl.minimum(tl.minimum(diagonals + 1, H + W - 1 - diagonals), tl.minimum(H, W))
    lengths = tl.maximum(lengths, 0)
    passed = tl.cumsum(lengths, 0) <= rank
    diagonal = tl.sum(passed.to(tl.int32), 0)
    i = tl.maximum(diagonal - W + 1, 0) + rank - tl.sum(tl.where(passed, lengths, 0), 0)
    return _from_the_middle(i, H), _from_the_middle(diagonal - i, W)


@triton.jit
def data_gradient_kernel(
    grad,  # [B, OH, OW, N]
    weight,  # [N, KH, KW, C]
    grad_x,  # [B, H, W, C], written
    B,
    H: tl.constexpr,
    W: tl.constexpr,
    C: tl.constexpr,
    OH: tl.constexpr,
    OW: tl.constexpr,
    N: tl.constexpr,
    KH: tl.constexpr,
    KW: tl.constexpr,
    STRIDE: tl.constexpr,
    DIAGONALS: tl.constexpr,  # a power of two, at least H + W
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """One position of BM examples: all rows have the same taps, so none is computed in vain."""
    columns: tl.constexpr = C // BN
    chunks: tl.constexpr = N // BK
    program = tl.program_id(0)
    blocks = tl.cdiv(B, BM)
    c = program % columns * BN + tl.arange(0, BN)
    b = program // columns % blocks * BM + tl.arange(0, BM)
    row, column = _inner_first(program // columns // blocks, H, W, DIAGONALS)
    # Taps kh with row = STRIDE·oh + kh and 0 ≤ oh < OH.
    first_kh = tl.maximum(row - STRIDE * (OH - 1), row % STRIDE)
    first_kw = tl.maximum(column - STRIDE * (OW - 1), column % STRIDE)
    count_h = tl.maximum(tl.minimum(KH - 1, row) - first_kh + STRIDE, 0) // STRIDE
    count_w = tl.maximum(tl.minimum(KW - 1, column) - first_kw + STRIDE, 0) // STRIDE
    k = tl.arange(0, BK)
    g_places = grad + b.to(tl.int64)[:, None] * (OH * OW * N) + k[None, :]
    w_places = weight + k[:, None] * (KH * KW * C) + c[None, :]
    inside = (b < B)[:, None]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(count_h * count_w * chunks):
        tap, chunk = step // chunks, step % chunks
        kh, kw = first_kh + tap // count_w * STRIDE, first_kw + tap % count_w * STRIDE
        source = ((row - kh) // STRIDE * OW + (column - kw) // STRIDE) * N
        g = tl.load(g_places + (source + chunk * BK), mask=inside, other=0)
        w = tl.load(w_places + (chunk * BK * KH * KW * C + (kh * KW + kw) * C))
        total = tl.dot(g, w, total)
    places = grad_x + (b.to(tl.int64)[:, None] * (H * W * C) + (row * W + column) * C + c[None, :])
    tl.store(places, total.to(grad_x.dtype.element_ty), mask=inside)
