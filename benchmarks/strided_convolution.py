"""Can a hand-written product beat cuDNN on the primary capsules' convolution (9×9, stride 2, 256 → 256 channels)?

    PYTHONPATH=src python -m benchmarks.strided_convolution

``strided_convolution`` is a custom op on channels-last bf16: forward and data gradient are Triton, the weight gradient
is cuDNN's. The tiles are searched for once for each batch size.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import triton
from torch import Tensor

from benchmarks.gpu_timing import capture, microseconds, percentile
from benchmarks.strided_kernels import data_gradient_kernel, forward_kernel

__all__ = ["strided_convolution"]

FORWARD_TILES = [
    (BM, BN, warps, stages, splits)
    for BM, BN, warps, stages in ((128, 256, 8, 3), (128, 128, 4, 3), (128, 128, 4, 4))
    for splits in (2, 3, 5)
]
GRADIENT_TILES = [(128, 256, 8, 3), (128, 128, 4, 3), (128, 128, 4, 4), (128, 128, 8, 4)]

chosen: dict[tuple[str, int], tuple[int, ...]] = {}


def sizes(x: Tensor, weight: Tensor, stride: int) -> dict[str, int]:
    (_, C, H, W), (N, _, KH, KW) = x.shape, weight.shape
    OH, OW = (H - KH) // stride + 1, (W - KW) // stride + 1
    return {"H": H, "W": W, "C": C, "OH": OH, "OW": OW, "N": N, "KH": KH, "KW": KW, "STRIDE": stride}


def forward(x: Tensor, weight: Tensor, stride: int, tile: tuple[int, ...]) -> Tensor:
    BM, BN, warps, stages, splits = tile
    s = sizes(x, weight, stride)
    M = len(x) * s["OH"] * s["OW"]
    partial = torch.empty(splits, M, s["N"], dtype=torch.float32 if splits > 1 else x.dtype, device=x.device)
    forward_kernel[(triton.cdiv(M, BM) * splits * (s["N"] // BN),)](
        x, weight, partial, M, **s, SPLITS=splits, BM=BM, BN=BN, BK=64, num_warps=warps, num_stages=stages
    )
    out = partial[0] if splits == 1 else torch.sum(partial, 0, dtype=torch.float32).to(x.dtype)
    return out.view(len(x), s["OH"], s["OW"], s["N"]).permute(0, 3, 1, 2)


@functools.cache
def heavy_first(H: int, W: int, KH: int, KW: int, OH: int, OW: int, stride: int, device: str) -> Tensor:
    def taps(place: int, size: int, count: int) -> int:
        return sum((place - k) % stride == 0 and 0 <= (place - k) // stride < count for k in range(size))

    work = [taps(position // W, KH, OH) * taps(position % W, KW, OW) for position in range(H * W)]
    order = sorted(range(H * W), key=lambda position: -work[position])
    return torch.tensor(order, dtype=torch.int32, device=device)


def data_gradient(grad: Tensor, x: Tensor, weight: Tensor, stride: int, tile: tuple[int, ...]) -> Tensor:
    BM, BN, warps, stages = tile
    s = sizes(x, weight, stride)
    order = heavy_first(s["H"], s["W"], s["KH"], s["KW"], s["OH"], s["OW"], stride, str(x.device))
    grad_x = torch.empty_like(x)
    blocks = triton.cdiv(len(x), BM)
    data_gradient_kernel[(s["H"] * s["W"] * blocks * (s["C"] // BN),)](
        grad, weight, order, grad_x, len(x), **s, BM=BM, BN=BN, BK=64, num_warps=warps, num_stages=stages
    )
    return grad_x


def tune(B: int, report: bool = False) -> None:
    """Choose the tiles for this batch size, checking each against cuDNN."""
    if ("forward", B) in chosen:
        return
    x = torch.randn(B, 256, 20, 20, device="cuda").bfloat16().to(memory_format=torch.channels_last)
    weight = (0.02 * torch.randn(256, 256, 9, 9, device="cuda")).bfloat16().to(memory_format=torch.channels_last)
    grad = torch.randn(B, 256, 6, 6, device="cuda").bfloat16().to(memory_format=torch.channels_last)
    out = torch.conv2d(x, weight, None, 2)
    flags = ([2, 2], [0, 0], [1, 1], False, [0, 0], 1, [True, False, False])
    grad_x = torch.ops.aten.convolution_backward(grad, x, weight, None, *flags)[0]
    jobs: list[tuple[str, list[tuple[int, ...]], Any, Tensor]] = [
        ("forward", FORWARD_TILES, lambda tile: forward(x, weight, 2, tile), out),
        ("gradient", GRADIENT_TILES, lambda tile: data_gradient(grad, x, weight, 2, tile), grad_x),
    ]
    plain = {
        "forward": lambda: torch.conv2d(x, weight, None, 2),
        "gradient": lambda: torch.ops.aten.convolution_backward(grad, x, weight, None, *flags),
    }
    for name, tiles, function, exact in jobs:
        times = {}
        for tile in tiles:
            result = function(tile)
            error = float((result.float() - exact.float()).norm() / exact.float().norm())
            if not error < 5e-3:
                print(f"{name} {tile} is wrong: {error:.1e}")
                continue
            replay = capture([functools.partial(function, tile)] * 2)
            times[tile] = percentile(microseconds(replay, 2, repeats=7, seconds=0.03), 0.5)
        chosen[name, B] = min(times, key=lambda tile: times[tile])
        if report:
            cudnn = percentile(microseconds(capture([plain[name]] * 2), 2, repeats=7, seconds=0.03), 0.5)
            print(f"B {B} {name}: cuDNN {cudnn:.0f} µs;", ", ".join(f"{t} {v:.0f}" for t, v in times.items()))


@torch.library.custom_op(
    "benchmarks::strided_convolution", mutates_args=(), schema="(Tensor x, Tensor weight) -> Tensor"
)
def strided_convolution(x: Tensor, weight: Tensor) -> Tensor:
    """Stride 2, no padding."""
    return forward(_last(x), _last(weight), 2, chosen["forward", len(x)])


@strided_convolution.register_fake
def _shape(x: Tensor, weight: Tensor) -> Tensor:
    s = sizes(x, weight, 2)
    return x.new_empty(len(x), s["OH"], s["OW"], s["N"]).permute(0, 3, 1, 2)


@torch.library.custom_op(
    "benchmarks::strided_data_gradient", mutates_args=(), schema="(Tensor grad, Tensor x, Tensor weight) -> Tensor"
)
def strided_data_gradient(grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    return data_gradient(_last(grad), _last(x), _last(weight), 2, chosen["gradient", len(x)])


@strided_data_gradient.register_fake
def _gradient_shape(grad: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.channels_last)


def _last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
    x, weight = ctx.saved_tensors
    grad = _last(grad)
    only_weight = [False, True, False]
    _, grad_weight, _ = torch.ops.aten.convolution_backward(
        grad, x, weight, None, [2, 2], [0, 0], [1, 1], False, [0, 0], 1, only_weight
    )
    return strided_data_gradient(grad, x, weight), grad_weight


strided_convolution.register_autograd(
    _backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
)

if __name__ == "__main__":
    torch.backends.cudnn.benchmark = True
    for batch in (128, 512):
        tune(batch, report=True)
