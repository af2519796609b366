"""The parts of CapsNet's training step one by one on a GPU: time, operations, least bytes, share of the chip's limits.

    PYTHONPATH=src python -m benchmarks.step_parts --csv records/gpu-routing/parts.csv

Each part runs alone, compiled and in a captured graph, in bf16 as in training. The limits are measured in the same
run: a large matrix product and a kernel that only moves memory. A part's floor is the longer of operations / rate and
bytes / bandwidth.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.gpu_timing import append_rows, capture, device_line, microseconds, percentile
from torchcaps.models import CapsNet

HALF, WHOLE = 2, 4  # bytes


@dataclass(frozen=True)
class Part:
    """Work to time, and what it must at least cost."""

    name: str
    work: Callable[[], object]
    operations: float
    bytes: float


def time_of(work: Callable[[], object]) -> float:
    """Median in µs."""
    return percentile(microseconds(capture([work]), repeats=15), 0.5)


def limits() -> tuple[float, float]:
    """Operations a second of a large bf16 product, and bytes a second of a kernel that reads and writes a GiB."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    rate = 2 * 8192**3 / time_of(lambda: a @ b) * 1e6
    source = torch.randn(2**28, device="cuda")
    target = torch.empty_like(source)
    # A kernel, not copy_: in a captured graph that is left to a copy engine, which is slower.
    return rate, 2 * WHOLE * 2**28 / time_of(lambda: torch.neg(source, out=target)) * 1e6


def parts(B: int) -> list[Part]:
    """CapsNet for 28×28 in the order of a step."""
    model = CapsNet().cuda()
    for layer in (model.conv, model.primary):
        layer.weight.data = layer.weight.data.contiguous(memory_format=torch.channels_last)
    images = torch.rand(B, 1, 28, 28, device="cuda")
    labels = torch.randint(0, 10, (B,), device="cuda")
    with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
        features = model.conv(images).relu()
        children = model.primary(features)
        capsules = model.classes(children)
    assert model.decoder is not None

    compiled = {layer: torch.compile(layer, dynamic=False) for layer in model.children()}

    def pass_through(layer: nn.Module, backward: bool, *inputs: Tensor) -> None:
        leaves = [x.detach().requires_grad_(x.is_floating_point() and x is not images) for x in inputs]
        with torch.autocast("cuda", torch.bfloat16):
            output = compiled[layer](*leaves)
            if backward:
                wanted = [x for x in leaves if x.requires_grad]
                torch.autograd.grad(output, [*wanted, *layer.parameters()], torch.ones_like(output))

    first = 2 * B * 400 * 81 * 256
    first_out, second_out = B * 400 * 256 * HALF, B * 36 * 256 * HALF
    second = 2 * B * 36 * 81 * 256 * 256
    second_weights = 81 * 256 * 256
    votes = 2 * B * 1152 * 10 * 16 * 8
    routing_in, routing_weights = B * 1152 * 8 * HALF, 1152 * 10 * 16 * 8
    decoder_weights = 160 * 512 + 512 * 1024 + 1024 * 784
    optimizer = torch.optim.Adam(model.parameters(), fused=True, capturable=True)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    count = sum(parameter.numel() for parameter in model.parameters())
    run = functools.partial
    return [
        Part("first convolution, forward", run(pass_through, model.conv, False, images), first, first_out),
        Part("first convolution, both", run(pass_through, model.conv, True, images), 2 * first, 2 * first_out),
        Part("primary capsules, forward", run(pass_through, model.primary, False, features), second,
             first_out + second_out + second_weights * HALF),
        Part("primary capsules, both", run(pass_through, model.primary, True, features), 3 * second,
             3 * first_out + 3 * second_out + second_weights * (2 * HALF + WHOLE)),
        Part("class capsules, forward", run(pass_through, model.classes, False, children), 7 * votes,
             routing_in + routing_weights * HALF),
        Part("class capsules, both", run(pass_through, model.classes, True, children), 23 * votes,
             3 * routing_in + routing_weights * (2 * HALF + WHOLE)),
        Part("decoder, both", run(pass_through, model.decoder, True, capsules, labels), 6 * B * decoder_weights,
             decoder_weights * (2 * HALF + WHOLE)),
        Part("Adam", optimizer.step, 12 * count, 7 * WHOLE * count),
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 512])
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rate, bandwidth = limits()
    print(f"limits: {rate / 1e12:.0f} TFLOP/s in bf16, {bandwidth / 1e12:.2f} TB/s")
    for B in options.batches:
        for part in parts(B):
            measured = time_of(part.work)
            floor = max(part.operations / rate, part.bytes / bandwidth) * 1e6
            row = {
                "B": B, "part": part.name, "µs": round(measured, 1), "floor µs": round(floor, 1),
                "TFLOP/s": round(part.operations / measured / 1e6, 1), "GB/s": round(part.bytes / measured / 1e3, 1),
                "share of bf16 limit": round(part.operations / measured * 1e6 / rate, 3),
                "share of bandwidth": round(part.bytes / measured * 1e6 / bandwidth, 3),
                "operations a byte": round(part.operations / part.bytes, 1),
                "limit TFLOP/s": round(rate / 1e12, 1), "limit GB/s": round(bandwidth / 1e9, 1),
            }  # fmt: skip
            if options.csv:
                append_rows(options.csv, [{**row, **device_line()}])
            print(" ".join(f"{key} {value}" for key, value in list(row.items())[:9]), flush=True)


if __name__ == "__main__":
    main()
