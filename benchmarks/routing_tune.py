"""Search for the tiles of the fused kernels: each kernel's own time for a list of tiles, from the profiler.

PYTHONPATH=src python -m benchmarks.routing_tune --csv tiles.csv
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
from collections import defaultdict
from pathlib import Path

import torch

from benchmarks.gpu_timing import append_rows, device_line
from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.ops.routing.triton.launch import route, route_backward
from torchcaps.ops.routing.triton.tiles import Tile, Tiles

CANDIDATES = [
    Tile(rows, columns, warps, stages)
    for rows, columns, warps in [
        (32, 64, 4), (64, 32, 4), (64, 64, 4), (64, 128, 4), (128, 128, 8), (64, 256, 8), (128, 64, 4), (32, 128, 2),
        (64, 64, 2), (32, 256, 4),
    ]
    for stages in (1, 3)
]  # fmt: skip


def problem(B: int) -> tuple[torch.Tensor, ...]:
    """CapsNet's class capsules in bf16."""
    dtype = torch.bfloat16
    u = torch.randn(B, 1152, 8, device="cuda").mul(0.35).to(dtype)
    weight = torch.randn(1152, 10, 16, 8, device="cuda").mul(0.1).to(dtype)
    return u, weight, torch.full((10, 16), 0.1, device="cuda"), torch.randn(B, 10, 16, device="cuda").to(dtype)


def step(inputs: tuple[torch.Tensor, ...], tile: Tile) -> None:
    u, weight, bias, grad = inputs
    tiles = Tiles(tile, tile, tile, tile)
    _, saved = route(u, weight, bias, RoutingOptions(3), False, tiles)
    route_backward(u, weight, saved, grad, RoutingOptions(3), False, tiles)


def compile_only(numbers: list[int]) -> None:
    """Fill the compiler's cache on disk; several processes share the work."""
    inputs = problem(128)
    for number in numbers:
        step(inputs, CANDIDATES[number])
    torch.cuda.synchronize()


def kernel_times(B: int, tile: Tile, repeats: int = 12) -> dict[str, float]:
    """Median time in µs of every launch of a step, named by kernel and place: the first iteration is apart."""
    inputs = [problem(B) for _ in range(3)]
    for chosen in inputs:
        step(chosen, tile)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for number in range(repeats):
            step(inputs[number % len(inputs)], tile)
        torch.cuda.synchronize()
    launches: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for event in profile.events():
        if not event.device_time:
            continue  # the launch on the host's side
        launches[event.name].append((event.time_range.start, event.device_time))
    times: dict[str, float] = {}
    for name, list_of_launches in launches.items():
        in_order = [duration for _, duration in sorted(list_of_launches)]
        per_step = len(in_order) // repeats
        for place in range(per_step):
            of_this_place = sorted(in_order[place::per_step])
            times[f"{name[:40]} {place + 1}/{per_step}"] = of_this_place[len(of_this_place) // 2]
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--processes", type=int, default=12)
    options = parser.parse_args()
    shares = [list(range(start, len(CANDIDATES), options.processes)) for start in range(options.processes)]
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        pool.map(compile_only, shares)
    rows: list[dict[str, object]] = []
    for B, tile in itertools.product((128, 512), CANDIDATES):
        try:
            for name, duration in kernel_times(B, tile).items():
                rows.append({"B": B, "kernel": name, "rows": tile.examples, "columns": tile.columns,
                             "warps": tile.warps, "stages": tile.stages, "µs": round(duration, 2)})  # fmt: skip
        except Exception as error:  # a tile may need more shared memory than there is
            print(B, tile, repr(error)[:200])
    if options.csv:
        append_rows(options.csv, [{**row, **device_line()} for row in rows])
    for B in (128, 512):
        for name in dict.fromkeys(str(row["kernel"]) for row in rows):
            of_kernel = sorted((r for r in rows if r["B"] == B and r["kernel"] == name), key=lambda r: float(r["µs"]))  # type: ignore[arg-type]
            if not of_kernel:
                continue
            best = ", ".join(
                f"{r['rows']}×{r['columns']} w{r['warps']} s{r['stages']} {r['µs']}" for r in of_kernel[:5]
            )
            print(f"B {B} {name:44} {best}; worst {of_kernel[-1]['µs']}")


if __name__ == "__main__":
    main()
