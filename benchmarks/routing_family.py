"""Relatives of dynamic routing in the layer of CapsNet's classes: handed votes, and in the op that forms them itself.

    python -m benchmarks.routing_family --record
    PYTHONPATH=src python -m benchmarks.routing_family --device cuda

Both take turns in one run. On a GPU the routing on votes is compiled, both are in bf16, and ten calls are captured in
one graph, so that no launch is timed. Correctness is checked first; where something is wrong, no speed is reported.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.capsnet_cpu import QUIET_SPREAD, operations_are_right
from benchmarks.gpu_timing import capture
from benchmarks.routing_check import failures, grid, run_grid
from benchmarks.timing import Timing, take_turns
from torchcaps import nn

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "records" / "routing-family" / "timings.csv"
COLUMNS = ("date", "device", "threads", "torch", "routing", "case", "batch", "variant", "median_s", "p20_s", "p80_s")
VOTES, ONE_OP = "votes", "one op"
CALLS_IN_A_GRAPH = 10
ROUTINGS = {
    "dynamic": {"name": "dynamic"},
    "average": {"name": "average"},
    "fixed-point": {"name": "fixed-point"},
    "normalized": {"name": "normalized"},
    "k-means by inner product": {"name": "k-means", "distance": "inner"},
    "self-attention": {"name": "self-attention"},
}


def on_votes(layer: nn.CapsuleLinear, device: torch.device) -> Callable[[Tensor], Tensor]:
    """The same layer, but the votes are formed first and the routing is handed them."""

    def call(u: Tensor) -> Tensor:
        out: Tensor = layer.routing(layer.votes(u), bias=layer.bias).capsules  # type: ignore[operator]
        return out

    return torch.compile(call, fullgraph=True, dynamic=False) if device.type == "cuda" else call


def measure(settings: dict[str, str], batch: int, device: torch.device, seconds: float) -> dict[str, dict[str, Timing]]:
    """Times of a training step, forward and backward, and of inference."""
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    layer = nn.CapsuleLinear(1152, 10, 8, 16, routing=settings).to(device, dtype)
    u = (0.35 * torch.randn(batch, 1152, 8, device=device)).to(dtype).requires_grad_()
    leaves = [u, *layer.parameters()]
    variants: dict[str, Callable[[Tensor], Tensor]] = {VOTES: on_votes(layer, device), ONE_OP: layer}

    def train(call: Callable[[Tensor], Tensor]) -> None:
        torch.autograd.grad(call(u).square().sum(), leaves)

    def look(call: Callable[[Tensor], Tensor]) -> None:
        with torch.no_grad():
            call(u)

    return {
        case: time_variants({name: partial(work, call) for name, call in variants.items()}, device, seconds)
        for case, work in (("training", train), ("inference", look))
    }


def time_variants(variants: dict[str, Callable[[], None]], device: torch.device, seconds: float) -> dict[str, Timing]:
    if device.type == "cpu":
        return take_turns(variants, seconds)
    replays = {name: capture([work] * CALLS_IN_A_GRAPH) for name, work in variants.items()}

    def finished(replay: Callable[[], None]) -> None:
        replay()
        torch.cuda.synchronize()

    timings = take_turns({name: partial(finished, replay) for name, replay in replays.items()}, seconds)
    return {
        name: Timing(*(time / CALLS_IN_A_GRAPH for time in (t.median, t.p20, t.p80))) for name, t in timings.items()
    }


def is_right(device: torch.device) -> bool:
    """The routing's tests on a CPU; on a GPU, where they may not be installed, every way to compare votes."""
    if device.type == "cpu":
        return operations_are_right()
    cases = [case for case in grid() if case.precision == "bf16" and (case.centre != "sum" or case.B == 128)]
    return not failures(run_grid(cases, min(8, len(cases))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each variant and case")
    parser.add_argument("--record", action="store_true", help=f"append rows to {RECORD.relative_to(ROOT)}, if quiet")
    arguments = parser.parse_args()
    device, console = torch.device(arguments.device), Console(width=100)
    if not is_right(device):
        console.print("[red]The routing is not right, so no speed is reported.[/] Run: make test")
        raise SystemExit(1)
    table = Table(
        box=box.SIMPLE_HEAD, title=f"1152 → 10 capsules, R = 3, batch {arguments.batch}: milliseconds, median"
    )
    for column in ("routing", "case", VOTES, ONE_OP, "speed-up"):
        table.add_column(column, justify="left" if column in ("routing", "case") else "right", no_wrap=True)
    name_of_device = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    here = (date.today().isoformat(), name_of_device, torch.get_num_threads(), torch.__version__)
    rows: list[tuple[object, ...]] = []
    spread = 0.0
    for routing, settings in ROUTINGS.items():
        torch.compiler.reset()
        for case, timings in measure(settings, arguments.batch, device, arguments.seconds).items():
            votes, one_op = (1e3 * timings[name].median for name in (VOTES, ONE_OP))
            table.add_row(routing, case, f"{votes:.2f}", f"{one_op:.2f}", f"{votes / one_op:.2f}×")
            spread = max(spread, *(t.p80 / t.p20 for t in timings.values()))
            rows += [
                (*here, routing, case, arguments.batch, name, t.median, t.p20, t.p80) for name, t in timings.items()
            ]
    console.print(table)
    if spread > QUIET_SPREAD:
        console.print(f"[yellow]Times differ by {spread:.1f}× within one case: the machine is busy.[/]")
    elif arguments.record:
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        new = not RECORD.exists()
        with RECORD.open("a", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([COLUMNS, *rows] if new else rows)


if __name__ == "__main__":
    main()
