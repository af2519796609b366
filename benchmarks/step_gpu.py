"""The whole training step of CapsNet on a GPU: what routing costs, and what makes the convolutions fast.

    PYTHONPATH=src python -m benchmarks.step_gpu --csv records/gpu-routing/step.csv
    PYTHONPATH=src python -m benchmarks.step_gpu --size 36 --batches 256 --only library floor "compiled plain"
    PYTHONPATH=src python -m benchmarks.step_gpu --inference

A step is forward, decoder, loss in the authors' balance, backward and fused Adam on random data of MNIST's shape, bf16
autocast, compiled, replayed from a captured graph, except where the name says otherwise. The floor is the same network
whose class capsules are 160 numbers of the primary capsules: no votes and no routing. "The library" is what a
recipe gets on CUDA by itself: fused routing, first convolution as a matrix product, second one in Triton. Inference is
the forward pass to the lengths, without the decoder. "TFLOP/s" counts the operations of convolutions, votes and
decoder once forward and twice backward (no data gradient for the first layer), whatever a variant really does.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
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
    Variant("the library", "triton", "gemm", "triton"),
    Variant("floor of the library", "none", "gemm", "triton"),
    Variant("fused, max-autotune", "triton", mode="max-autotune-no-cudagraphs"),
]


@dataclass(frozen=True)
class Problem:
    """What is computed: pictures of ``size`` × ``size``, R iterations, a training step or the forward pass alone."""

    B: int
    size: int = 28
    R: int = 3
    inference: bool = False

    def operations(self) -> float:
        """Of convolutions, votes and decoder, for the whole batch."""
        first_side = self.size - 8
        side = (first_side - 9) // 2 + 1
        first = first_side**2 * 81 * 256
        rest = side**2 * 81 * 256 * 256 + 32 * side**2 * 10 * 16 * 8
        decoder = 160 * 512 + 512 * 1024 + 1024 * self.size**2
        return 2 * self.B * (first + rest if self.inference else 2 * first + 3 * (rest + decoder))


class Step:
    """One training step, or one forward pass, on data that stays on the device."""

    def __init__(self, variant: Variant, problem: Problem) -> None:
        torch.manual_seed(0)
        self.variant, self.problem = variant, problem
        self.model = CapsNet((1, problem.size, problem.size)).cuda()
        if variant.half:
            self.model.to(memory_format=torch.channels_last)
        if variant.routing == "none":
            self.model.classes.requires_grad_(False)
        self.criterion = self.model.make_loss()
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=1e-3, fused=True, capturable=True)
        self.images = torch.rand(problem.B, 1, problem.size, problem.size, device="cuda")
        self.labels = torch.randint(0, 10, (problem.B,), device="cuda")
        self.forward: Callable[..., Tensor] = self.encode if problem.inference else self.loss
        if variant.mode is not None:
            self.forward = torch.compile(self.forward, mode=variant.mode, fullgraph=True, dynamic=False)

    def encode(self, images: Tensor) -> Tensor:
        """Class capsules."""
        model, variant = self.model, self.variant
        features = CONVOLUTIONS[variant.first](model.conv, images)
        maps = PRIMARY_CONVOLUTIONS[variant.primary](features, model.primary.weight)
        maps = maps * model.primary.scale + model.primary.bias[:, None, None].to(maps.dtype)
        u = ops.squash(maps.permute(0, 2, 3, 1).reshape(len(images), -1, model.primary.dim))
        assert model.classes.bias is not None
        return ROUTINGS[variant.routing](u, model.classes.weight, model.classes.bias, self.problem.R)

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        capsules = self.encode(images)
        lengths = ops.capsule_lengths(capsules)
        return self.criterion(lengths, labels, self.model.reconstruct(capsules, labels), images).total

    def __call__(self) -> None:
        half = torch.autocast("cuda", torch.bfloat16, enabled=self.variant.half)
        if self.problem.inference:
            with torch.inference_mode(), half:
                ops.capsule_lengths(self.forward(self.images))
            return
        self.optimizer.zero_grad(set_to_none=True)
        with half:
            loss = self.forward(self.images, self.labels)
        loss.backward()
        self.optimizer.step()


def measure(variant: Variant, problem: Problem) -> dict[str, float]:
    step = Step(variant, problem)
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
            "images/s": 1e6 * problem.B / middle, "peak GiB": peak,
            "TFLOP/s": problem.operations() / middle / 1e6}  # fmt: skip


def kernel_table(variant: Variant, problem: Problem, replays: int = 10, most: int = 32) -> Iterator[str]:
    """Where the time of a step goes, kernel by kernel."""
    step = Step(variant, problem)
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
    parser.add_argument("--size", type=int, default=28, help="36 is MultiMNIST's")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--inference", action="store_true", help="the forward pass alone")
    parser.add_argument("--only", nargs="+", help="variants whose names contain one of these")
    parser.add_argument("--leave-out", nargs="+", default=[], help="variants whose names contain one of these")
    parser.add_argument(
        "--profile", nargs="+", default=[], help="names of variants to take apart, at the first batch size"
    )
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    chosen = [v for v in VARIANTS if not options.only or any(part in v.name for part in options.only)]
    problems = [Problem(B, options.size, options.iterations, options.inference) for B in options.batches]
    for problem in problems:
        for variant in chosen:
            if any(part in variant.name for part in options.leave_out):
                continue
            torch.compiler.reset()
            gc.collect()  # compiled steps hold their graphs in circles, and their memory would count below
            torch.cuda.empty_cache()
            try:
                result = measure(variant, problem)
            except Exception as error:  # one variant that cannot run must not cost the others their figures
                print(f"{problem} {variant.name}: {repr(error)[:600]}", flush=True)
                continue
            rounded = {key: round(value, 4 if value < 100 else 0) for key, value in result.items()}
            if options.csv:
                append_rows(options.csv, [{**asdict(problem), "variant": variant.name, **rounded, **device_line()}])
            print(f"{problem} {variant.name:40}", " ".join(f"{k} {v:g}" for k, v in rounded.items()), flush=True)
    for name in options.profile:
        for variant in (v for v in VARIANTS if v.name == name):
            torch.compiler.reset()
            print(f"\n{variant.name}, {problems[0]}")
            print("\n".join(kernel_table(variant, problems[0])))


if __name__ == "__main__":
    main()
