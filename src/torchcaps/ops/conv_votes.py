"""Votes of convolutional capsules: each upper position hears the lower capsules under its kernel."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from torchcaps.ops.precision import with_product_dtype

__all__ = ["conv_votes", "coordinate_offsets", "gather_taps", "grid_votes", "taps_inside"]


def gather_taps(x: Tensor, kernel_size: int, stride: int = 1, padding: tuple[int, int] = (0, 0)) -> Tensor:
    """What lies under a kernel at every position, one strided slice for each of its taps.

    Args:
        padding: rows and columns of zeros before and after, the same in both directions.

    Shape:
        x: ``[B, H, W, ...]``. Returns ``[B, H', W', T, ...]`` with ``T = kernel_size²`` taps, row by row.
    """
    before, after = padding
    if before or after:
        x = F.pad(x, [0, 0] * (x.ndim - 3) + [before, after, before, after])
    H, W = x.shape[1:3]
    if min(H, W) < kernel_size:
        raise ValueError(
            f"a {H}×{W} grid of capsules is too small for {kernel_size}×{kernel_size} kernels; use larger pictures, "
            "a smaller kernel_size or padding='same'"
        )
    rows, columns = (H - kernel_size) // stride + 1, (W - kernel_size) // stride + 1
    taps = [
        x[:, r : r + stride * (rows - 1) + 1 : stride, c : c + stride * (columns - 1) + 1 : stride]
        for r in range(kernel_size)
        for c in range(kernel_size)
    ]
    return torch.stack(taps, dim=3)


def conv_votes(taps: Tensor, weight: Tensor) -> Tensor:
    r"""Votes of the capsules under a kernel; a weight of its own for each tap and pair of types, shared by positions.

    Vector poses: :math:`\hat u = W_{tcj} u_{tc}`. Matrix poses: :math:`\hat u = M_{tc} W_{tcj}` with M the pose as an
    m×m matrix, so that a transformation of coordinates applies to every row alike.

    Shape:
        taps: ``[N, T, C, P]``. weight: ``[T, C, J, D, P]``; or ``[T, C, J, m, m]`` with ``P = D = m²`` for matrices,
        told apart by its last dimension. Returns ``[N, I, J, D]`` with ``I = T·C``.
    """
    taps, weight = with_product_dtype(taps, weight)
    N, T, C, P = taps.shape
    J, rows, columns = weight.shape[2:]
    if columns == P:
        votes = torch.einsum("ntcp,tcjdp->ntcjd", taps, weight)
    elif rows == columns and columns**2 == P:
        poses = taps.unflatten(3, (rows, columns))
        votes = torch.einsum("ntcpq,tcjqr->ntcjpr", poses, weight).flatten(4)
    else:
        raise ValueError(
            f"capsules of {P} dimensions need a weight [T, C, J, D, {P}], or [T, C, J, m, m] with m² = {P}, "
            f"got {list(weight.shape)}"
        )
    return votes.reshape(N, T * C, J, votes.shape[4])


def grid_votes(capsules: Tensor, weight: Tensor) -> Tensor:
    """Votes of a whole grid for capsules that have no place; one weight for each pair of types, shared by positions.

    Shape:
        capsules: ``[B, H, W, C, P]``. weight: ``[C, J, D, P]`` or ``[C, J, m, m]``.
        Returns ``[B, I, J, D]`` with ``I = H·W·C``.
    """
    B, H, W, C, P = capsules.shape
    votes = conv_votes(capsules.reshape(B * H * W, 1, C, P), weight.unsqueeze(0))  # [B·H·W, C, J, D]
    return votes.reshape(B, H * W * C, *votes.shape[2:])


def coordinate_offsets(rows: int, columns: int, dim: int, pose: str, like: Tensor) -> Tensor:
    """What coordinate addition adds to the votes of each position: its scaled row and column.

    They go to the first two components of a vector, and to the first two entries of the right-hand column of a matrix
    (Hinton, Sabour, Frosst 2018).

    Shape:
        Returns ``[rows·columns, D]`` in the dtype and on the device of ``like``.

    Example:
        >>> import torch
        >>> coordinate_offsets(1, 2, 4, "matrix", torch.zeros(1))   # the middle of each cell
        tensor([[0.0000, 0.5000, 0.0000, 0.2500],
                [0.0000, 0.5000, 0.0000, 0.7500]])
    """
    m = math.isqrt(dim)
    for_row, for_column = (0, 1) if pose == "vector" else (m - 1, 2 * m - 1)
    if for_column >= dim:
        raise ValueError(f"coordinate addition needs capsules of at least 2 dimensions (4 for a matrix), got {dim}")
    wide = torch.promote_types(like.dtype, torch.float32)
    row, column = ((torch.arange(size, device=like.device, dtype=wide) + 0.5) / size for size in (rows, columns))
    row = row[:, None].expand(rows, columns).reshape(-1, 1)
    column = column.expand(rows, columns).reshape(-1, 1)
    component = torch.arange(dim, device=like.device)
    return (row * (component == for_row) + column * (component == for_column)).to(like.dtype)


def taps_inside(
    size: tuple[int, int], kernel_size: int, stride: int, padding: tuple[int, int], device: torch.device
) -> Tensor:
    """Which taps lie on the grid and not on its padding: bool ``[H'·W', T]`` for a grid of this size."""
    inside = torch.ones(1, *size, device=device)
    return gather_taps(inside, kernel_size, stride, padding).flatten(0, 2).bool()
