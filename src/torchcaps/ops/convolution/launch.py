"""From tensors to kernel launches; every tensor here is channels-last."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
import triton
from torch import Tensor

from torchcaps.ops.convolution.kernels import add_splits_kernel, data_gradient_kernel, forward_kernel
from torchcaps.ops.convolution.support import CHANNEL_STEP
from torchcaps.ops.convolution.tiles import Processor, Tile, choose_splits, forward_tile, gradient_tile
from torchcaps.ops.triton_support import on_device

__all__ = ["Sizes", "data_gradient", "forward"]

ADD_BLOCK = 1024


@dataclass(frozen=True)
class Sizes:
    """The compile-time sizes of both kernels, by the names that they have there."""

    H: int
    W: int
    C: int
    OH: int
    OW: int
    N: int
    KH: int
    KW: int
    STRIDE: int

    @classmethod
    def of(cls, height: int, width: int, weight: Tensor, stride: int) -> Sizes:
        N, C, KH, KW = weight.shape
        return cls(height, width, C, (height - KH) // stride + 1, (width - KW) // stride + 1, N, KH, KW, stride)


def forward(x: Tensor, weight: Tensor, stride: int, tile: Tile | None = None, splits: int | None = None) -> Tensor:
    """``x`` ``[B, C, H, W]``, ``weight`` ``[N, C, KH, KW]`` → ``[B, N, OH, OW]``; without a tile, the best known."""
    B, _, H, W = x.shape
    sizes = Sizes.of(H, W, weight, stride)
    M, N = B * sizes.OH * sizes.OW, sizes.N
    out = torch.empty(B, sizes.OH, sizes.OW, N, dtype=x.dtype, device=x.device)
    if B == 0:
        return out.permute(0, 3, 1, 2)
    processor = Processor.of(x.device)
    tile = tile or forward_tile(M, N, processor)
    tiles = triton.cdiv(M, tile.rows) * (N // tile.columns)
    splits = splits or choose_splits(tiles, sizes.KH * sizes.KW * sizes.C // CHANNEL_STEP, processor)
    partial = out if splits == 1 else torch.empty(splits, M, N, dtype=torch.float32, device=x.device)
    with on_device(x.device):
        forward_kernel[(tiles * splits,)](
            x, weight, partial, M, splits, **asdict(sizes), BM=tile.rows, BN=tile.columns, BK=CHANNEL_STEP,
            num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
        if splits > 1:
            add_splits_kernel[(triton.cdiv(M * N, ADD_BLOCK),)](partial, out, M * N, splits, BLOCK=ADD_BLOCK)
    return out.permute(0, 3, 1, 2)


def data_gradient(
    grad: Tensor, weight: Tensor, stride: int, height: int, width: int, tile: Tile | None = None
) -> Tensor:
    """``grad`` ``[B, N, OH, OW]`` → the gradient of ``x`` ``[B, C, height, width]``."""
    B = len(grad)
    sizes = Sizes.of(height, width, weight, stride)
    grad_x = torch.empty(B, height, width, sizes.C, dtype=grad.dtype, device=grad.device)
    if B == 0:
        return grad_x.permute(0, 3, 1, 2)
    tile = tile or gradient_tile(B, sizes.C, Processor.of(grad.device))
    programs = height * width * triton.cdiv(B, tile.rows) * (sizes.C // tile.columns)
    with on_device(grad.device):
        data_gradient_kernel[(programs,)](
            grad, weight, grad_x, B, **asdict(sizes), DIAGONALS=triton.next_power_of_2(height + width),
            BM=tile.rows, BN=tile.columns, BK=CHANNEL_STEP, num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
    return grad_x.permute(0, 3, 1, 2)
