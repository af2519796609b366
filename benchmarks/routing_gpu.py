"""Votes and routing, forward and backward, on a GPU: textbook, eager, compiled and fused side by side in one run.

    PYTHONPATH=src python -m benchmarks.routing_gpu --csv records/gpu-routing/routing.csv

The sizes are those of CapsNet's class capsules unless a sweep changes one. Every formulation runs inside a captured
graph over several input sets that do not fit into the cache together. Before anything is timed a part of the grid of
``benchmarks.routing_check`` runs, and nothing is printed if it fails.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.gpu_timing import append_rows, capture, device_line, microseconds, percentile
from benchmarks.routing_check import failures, grid, run_grid
from benchmarks.textbook import textbook_capsules
from torchcaps import ops

INPUT_SETS = 6
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


@dataclass(frozen=True)
class Setting:
    """One problem."""

    B: int = 128
    I: int = 1152
    J: int = 10
    D: int = 16
    P: int = 8
    R: int = 3
    dtype: str = "bf16"

    def least_bytes(self) -> int:
        """Each input read once, each output written once, forward and backward."""
        size = DTYPES[self.dtype].itemsize
        children, weights = self.B * self.I * self.P, self.I * self.J * self.D * self.P
        return size * (3 * children + 3 * weights)

    def multiplications(self) -> int:
        """Of the fused form: 3R−2 products forward and 7(R−1)+2 backward, each B·I·J·D·P."""
        return self.B * self.I * self.J * self.D * self.P * (3 * self.R - 2 + 7 * (self.R - 1) + 2)


def settings() -> Iterator[Setting]:
    """CapsNet's layer at two batch sizes and R, MultiMNIST's, float32; then each size changed on its own."""
    base = Setting()
    for B in (128, 512):
        for R in (3, 1):
            yield replace(base, B=B, R=R)
    yield replace(base, B=256, I=3200)  # MultiMNIST, 36×36: a grid of 10×10
    yield replace(base, dtype="fp32")
    yield from (replace(base, R=R) for R in (5, 10))
    yield from (replace(base, J=J) for J in (5, 20, 40))
    yield from (replace(base, I=I) for I in (288, 4608))
    yield from (replace(base, D=D) for D in (8, 32))
    yield from (replace(base, B=B) for B in (32, 2048))


def formulations(compiled: bool) -> dict[str, Callable[[Tensor, Tensor, Tensor, int], Tensor]]:
    def plain(backend: str) -> Callable[[Tensor, Tensor, Tensor, int], Tensor]:
        return lambda u, weight, bias, R: ops.capsule_linear(u, weight, R, bias, backend=backend)

    chosen = {
        "textbook": lambda u, weight, bias, R: textbook_capsules(u, weight, R),  # has no bias
        "eager": plain("eager"),
        "fused": plain("triton"),
    }
    if compiled:
        chosen["compiled"] = torch.compile(plain("eager"), fullgraph=True, dynamic=False)
    return chosen


def measure(setting: Setting, function: Callable[[Tensor, Tensor, Tensor, int], Tensor]) -> dict[str, float]:
    """Times in µs of the forward pass alone, and of forward and backward; peak memory in MiB beyond the inputs."""
    dtype = DTYPES[setting.dtype]
    sets = []
    for _ in range(INPUT_SETS):
        u = torch.randn(setting.B, setting.I, setting.P, device="cuda").mul(0.35).to(dtype)
        weight = torch.randn(setting.I, setting.J, setting.D, setting.P, device="cuda").mul(0.1).to(dtype)
        bias = torch.full((setting.J, setting.D), 0.1, device="cuda")
        grad = torch.randn(setting.B, setting.J, setting.D, device="cuda").to(dtype)
        sets.append(([u.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()], grad))

    def forward(number: int) -> None:
        with torch.no_grad():
            function(*sets[number][0], setting.R)

    def both(number: int) -> None:
        leaves, grad = sets[number]
        torch.autograd.grad(function(*leaves, setting.R), leaves, grad, allow_unused=True)

    result = {}
    both(0)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    both(0)
    result["peak MiB"] = (torch.cuda.max_memory_allocated() - before) / 2**20
    for name, work in (("forward", forward), ("both", both)):
        replay = capture([functools.partial(work, number) for number in range(INPUT_SETS)])
        times = microseconds(replay, INPUT_SETS)
        result |= {f"{name} {label}": percentile(times, p) for label, p in (("µs", 0.5), ("p20", 0.2), ("p80", 0.8))}
    return result


def large_layer() -> dict[str, object]:
    """The layer whose votes alone would need as much memory as its weights: I = 50,000, J = 100, D = P = 16, B = 32."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    u = torch.randn(32, 50_000, 16, device="cuda", requires_grad=True)
    weight = torch.empty(50_000, 100, 16, 16, device="cuda").normal_(std=0.01).requires_grad_()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(2):  # the first time compiles
        u.grad = weight.grad = None
        start.record()
        ops.capsule_linear(u, weight, backend="triton").square().sum().backward()
        end.record()
        end.synchronize()
    return {"ms": start.elapsed_time(end), "peak GiB": torch.cuda.max_memory_allocated() / 2**30,
            "finite": bool(weight.grad.isfinite().all() & u.grad.isfinite().all())}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--first", type=int, default=None, help="only so many settings")
    parser.add_argument("--check-every", type=int, default=25, help="every n-th case of the correctness grid")
    parser.add_argument("--no-compile", action="store_true", help="leave the compiled plain formulation out")
    parser.add_argument("--only", nargs="+", help="these formulations only")
    parser.add_argument("--large", action="store_true", help="the layer of 50,000 capsules too")
    options = parser.parse_args()
    cases = list(grid())[:: options.check_every]
    wrong = failures(run_grid(cases, min(8, len(cases))))
    if wrong:
        raise SystemExit(f"the fused op is not right, so its speed means nothing: {wrong[:3]}")
    if options.large:
        print("I = 50,000, J = 100, D = P = 16, B = 32, float32:", large_layer(), flush=True)
    for setting in list(settings())[: options.first]:
        baseline = 0.0
        torch.compiler.reset()
        for name, function in formulations(not options.no_compile).items():
            if options.only and name not in options.only:
                continue
            try:
                result = measure(setting, function)
            except torch.OutOfMemoryError as error:
                print(setting, name, error)
                continue
            baseline = baseline or result["both µs"]
            rates = {
                "GB/s of the least bytes": setting.least_bytes() / result["both µs"] / 1e3,
                "TFLOP/s": 2 * setting.multiplications() / result["both µs"] / 1e6,
                "times textbook": baseline / result["both µs"],
            }
            rounded = {key: round(value, 1) for key, value in (result | rates).items()}
            if options.csv:
                append_rows(options.csv, [{**asdict(setting), "formulation": name, **rounded, **device_line()}])
            print(f"{setting} {name:9}", " ".join(f"{key} {value}" for key, value in rounded.items()), flush=True)


if __name__ == "__main__":
    main()
