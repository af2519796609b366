"""CapsNet on a CPU: the textbook formulation, ours in fp32 and bf16, and the network with the routing taken out.

    python -m benchmarks.capsnet_cpu

The whole network is timed, convolutions and decoder included, in one run. The routing's tests run first; while they
fail, no speed is reported.
"""

from __future__ import annotations

import argparse
import csv
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import torchcaps
from benchmarks.textbook import textbook_capsules
from benchmarks.timing import Timing, take_turns
from torchcaps import ops

ROOT = Path(__file__).parent.parent
QUIET_SPREAD = 2.0  # p80 over p20 of one case; above it a figure says more about the neighbours than about us
VARIANTS = ("textbook", "eager", "bf16", "floor")
COLUMNS = ("date", "device", "threads", "torch", "case", "batch", "variant", "median_s", "p20_s", "p80_s")
RECORD = ROOT / "records" / "capsnet-cpu" / "timings.csv"


class ClassCapsules(nn.Module):
    """In the place of CapsNet's own: capsules and their lengths."""

    def capsules(self, u: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, u: Tensor, full: bool = True) -> ops.RoutingOutput:
        capsules = self.capsules(u)
        return ops.RoutingOutput(capsules, ops.capsule_lengths(capsules))


class TextbookCapsules(ClassCapsules):
    """The class capsules as tutorials write them."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.detach().clone())

    def capsules(self, u: Tensor) -> Tensor:
        return textbook_capsules(u, self.weight)


class NoRouting(ClassCapsules):
    """The floor: no votes and no routing; the class capsules are the first lower ones, read as they lie."""

    def capsules(self, u: Tensor) -> Tensor:
        return u.flatten(1)[:, :160].reshape(-1, 10, 16)


def make_models() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    models = {name: torchcaps.create_model("capsnet") for name in VARIANTS}
    models["textbook"].classes = TextbookCapsules(models["eager"].classes.weight)
    models["floor"].classes = NoRouting()
    return models


def precision(name: str) -> torch.autocast:
    return torch.autocast("cpu", torch.bfloat16, enabled=name == "bf16")


def training_step(name: str, model: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], None]:
    loss = model.make_loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        with precision(name):
            out = model(images)
            pictures = model.reconstruct(out.capsules, labels)
        optimizer.zero_grad()
        loss(out.lengths, labels, pictures, images).total.backward()
        optimizer.step()

    return step


def inference(name: str, model: nn.Module, images: Tensor) -> Callable[[], None]:
    def run() -> None:
        with torch.inference_mode(), precision(name):
            model(images)

    return run


def measure(batch_size: int, seconds: float) -> dict[str, dict[str, Timing]]:
    images, labels = torch.rand(batch_size, 1, 28, 28), torch.randint(0, 10, (batch_size,))
    models = make_models().items()
    return {
        "inference": take_turns({name: inference(name, model, images) for name, model in models}, seconds),
        "training": take_turns({name: training_step(name, model, images, labels) for name, model in models}, seconds),
    }


def operations_are_right() -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "tests/ops/test_routing.py", "-k", "not 1152", "-x"]
    return subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each variant and case")
    parser.add_argument("--record", action="store_true", help=f"append rows to {RECORD.relative_to(ROOT)}, if quiet")
    arguments = parser.parse_args()
    console = Console(width=100)
    if not operations_are_right():
        console.print("[red]The routing's own tests fail, so no speed is reported.[/] Run: make test")
        raise SystemExit(1)
    table = Table(
        box=box.SIMPLE_HEAD, title=f"CapsNet 28×28, R = 3, {torch.get_num_threads()} threads: milliseconds, median"
    )
    for column in ("case", *VARIANTS, "speed-up", "in bf16", "over floor"):
        table.add_column(column, justify="left" if column == "case" else "right", no_wrap=True)
    rows = []
    for batch_size in (1, 64):
        for case, timings in measure(batch_size, arguments.seconds).items():
            textbook, eager, bf16, floor = (timings[name].median for name in VARIANTS)
            table.add_row(
                f"{case} {batch_size}",
                *(f"{1e3 * seconds:.1f}" for seconds in (textbook, eager, bf16, floor)),
                f"{textbook / eager:.2f}×",
                f"{textbook / bf16:.2f}×",
                f"{eager / floor:.2f}×",
            )
            rows += [(case, batch_size, name, t.median, t.p20, t.p80) for name, t in timings.items()]
    table.caption = "speed-up: textbook time over ours; over floor: our time over that without routing"
    console.print(table)
    spread = max(p80 / p20 for *_, p20, p80 in rows)
    if spread > QUIET_SPREAD:
        console.print(
            f"[yellow]Times differ by {spread:.1f}× within one case: the machine is busy.[/] Run again later."
        )
    elif arguments.record:
        record(rows)


def record(rows: list[tuple]) -> None:
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    new = not RECORD.exists()
    with RECORD.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(
                ["date", "device", "threads", "torch", "case", "batch", "variant", "median_s", "p20_s", "p80_s"]
            )
        here = (date.today().isoformat(), platform.machine(), torch.get_num_threads(), torch.__version__)
        writer.writerows([*here, *row] for row in rows)


if __name__ == "__main__":
    main()
