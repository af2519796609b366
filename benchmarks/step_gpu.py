"""The whole training step of CapsNet on a GPU: what routing costs, and what makes the convolutions fast.

    PYTHONPATH=src python -m benchmarks.step_gpu --csv records/gpu-routing/step.csv

A step is forward, decoder, loss in the authors' balance, backward and fused Adam on random data of MNIST's shape, bf16
autocast, compiled, replayed from a captured graph, except where the name says otherwise. The floor is the same network
whose class capsules are 160 numbers of the primary capsules: no votes and no routing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.gpu_timing import append_rows, capture, device_line, microseconds, percentile
from benchmarks.step_layers import CONVOLUTIONS, PRIMARY_CONVOLUTIONS, ROUTINGS
from torchcaps import ops
from torchcaps.models import CapsNet


@dataclass(frozen=True)
class Variant:
    """One way to compute the same step."""

    name: str
    routing: str
    first: str = "cudnn"
    primary: str = "cudnn"
    mode: str | None = "default"  # of torch.compile; None runs plain PyTorch
    captured: bool = True
    half: bool = True


VARIANTS = [
    Variant("textbook, fp32, as people run it", "textbook", mode=None, captured=False, half=False),
    Variant("eager fp32", "eager", mode=None, captured=False, half=False),
    Variant("eager bf16, graph", "eager", mode=None),
    Variant("fused bf16, graph, not compiled", "triton", mode=None),
    Variant("compiled plain", "eager"),
    Variant("fused", "triton"),
    Variant("floor", "none"),
    Variant("fused, conv1 as GEMM", "triton", "gemm"),
    Variant("floor, conv1 as GEMM", "none", "gemm"),
    Variant("fused, conv1 as GEMM, conv2 space-to-depth", "triton", "gemm", "space_to_depth"),
    Variant("fused, conv1 as GEMM, conv2 im2col", "triton", "gemm", "im2col"),
    Variant("fused, conv1 as GEMM, conv2 in Triton", "triton", "gemm", "triton"),
    Variant("floor, conv1 as GEMM, conv2 in Triton", "none", "gemm", "triton"),
    Variant("fused, max-autotune", "triton", mode="max-autotune-no-cudagraphs"),
]


class Step:
    """One training step on data that stays on the device."""

    def __init__(self, variant: Variant, B: int) -> None:
        torch.manual_seed(0)
        self.variant = variant
        self.model = CapsNet().cuda().to(memory_format=torch.channels_last if variant.half else torch.preserve_format)
        if variant.routing == "none":
            self.model.classes.requires_grad_(False)
        self.criterion = self.model.make_loss()
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=1e-3, fused=True, capturable=True)
        self.images = torch.rand(B, 1, 28, 28, device="cuda")
        self.labels = torch.randint(0, 10, (B,), device="cuda")
        self.forward: Callable[[Tensor, Tensor], Tensor] = self.loss
        if variant.mode is not None:
            self.forward = torch.compile(self.loss, mode=variant.mode, fullgraph=True, dynamic=False)

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        model, variant = self.model, self.variant
        features = CONVOLUTIONS[variant.first](model.conv, images)
        maps = PRIMARY_CONVOLUTIONS[variant.primary](features, model.primary.weight)
        maps = maps * model.primary.scale + model.primary.bias[:, None, None].to(maps.dtype)
        u = ops.squash(maps.permute(0, 2, 3, 1).reshape(len(images), -1, model.primary.dim))
        capsules = ROUTINGS[variant.routing](u, model.classes.weight, model.classes.bias)
        lengths = ops.capsule_lengths(capsules)
        return self.criterion(lengths, labels, model.reconstruct(capsules, labels), images).total

    def __call__(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.variant.half):
            loss = self.forward(self.images, self.labels)
        loss.backward()
        self.optimizer.step()


def measure(variant: Variant, B: int) -> dict[str, float]:
    step = Step(variant, B)
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() / 2**30
    times = microseconds(capture([step]) if variant.captured else step, repeats=20, seconds=0.5)
    middle = percentile(times, 0.5)
    return {"ms": middle / 1e3, "p20": percentile(times, 0.2) / 1e3, "p80": percentile(times, 0.8) / 1e3,
            "images/s": 1e6 * B / middle, "peak GiB": peak}  # fmt: skip


def kernel_table(variant: Variant, B: int, replays: int = 10, most: int = 32) -> Iterator[str]:
    """Where the time of a step goes, kernel by kernel."""
    step = Step(variant, B)
    replay = capture([step])
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(replays):
            replay()
        torch.cuda.synchronize()
    averages = [event for event in profile.key_averages() if event.self_device_time_total > 0]
    for event in sorted(averages, key=lambda event: -event.self_device_time_total)[:most]:
        calls = event.count / replays
        yield f"{event.self_device_time_total / replays:8.1f} µs  {calls:4.0f}×  {event.key[:110]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--only", nargs="+", help="variants whose names contain one of these")
    parser.add_argument("--leave-out", nargs="+", default=[], help="variants whose names contain one of these")
    parser.add_argument(
        "--profile", nargs="+", default=[], help="names of variants to take apart, at the first batch size"
    )
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    chosen = [v for v in VARIANTS if not options.only or any(part in v.name for part in options.only)]
    for B in options.batches:
        for variant in chosen:
            if any(part in variant.name for part in options.leave_out):
                continue
            torch.compiler.reset()
            torch.cuda.empty_cache()
            try:
                result = measure(variant, B)
            except Exception as error:  # one variant that cannot run must not cost the others their figures
                print(f"{B} {variant.name}: {repr(error)[:600]}", flush=True)
                continue
            rounded = {key: round(value, 4 if value < 100 else 0) for key, value in result.items()}
            if options.csv:
                append_rows(options.csv, [{"B": B, "variant": variant.name, **rounded, **device_line()}])
            print(f"B {B:4} {variant.name:45}", " ".join(f"{k} {v:g}" for k, v in rounded.items()), flush=True)
    for name in options.profile:
        for variant in (v for v in VARIANTS if v.name == name):
            torch.compiler.reset()
            print(f"\n{variant.name}, batch {options.batches[0]}")
            print("\n".join(kernel_table(variant, options.batches[0])))


if __name__ == "__main__":
    main()
