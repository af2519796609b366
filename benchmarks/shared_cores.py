"""Seconds of a short training on a CPU, alone and beside other work, with threads that spin and threads that sleep.

    python -m benchmarks.shared_cores --rounds 3 --machine Xeon --csv out/shared-cores.csv

Beside it run two busy loops, or a second training of the same kind. The settings take turns within a round, since other
work on the machine changes. Every training is a process of its own: OpenMP reads its environment once, before torch.
Rows are added to the file, so that several commands and machines share one.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
    "spin 1000": {"GOMP_SPINCOUNT": "1000"},
    "spin 10000": {"GOMP_SPINCOUNT": "10000"},
    "both": {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"},  # as the command line sets them
}
COMPANY = ("alone", "two busy loops", "a second training")
CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS")  # of whoever starts the benchmark
TRAINING = """
import sys
from torchcaps.train import fit
steps, folder = sys.argv[1:]
changes = [f"training.steps={steps}", "log.tensorboard=off"]
print(fit("demo", changes, device="cpu", run_dir=folder, progress=False).seconds)
"""
BUSY = "while True: pass"
ENDLESS = 1_000_000


def start(program: str, environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if name not in CHOICES}
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments], env={**kept, **environment}, stdout=subprocess.PIPE, text=True
    )


@contextmanager
def company(kind: str, environment: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Other work on the same cores, until the block is left."""
    others = []
    if kind == "two busy loops":
        others = [start(BUSY, {}) for _ in range(2)]
    elif kind == "a second training":
        others = [start(TRAINING, environment, str(ENDLESS), str(folder))]
    try:
        yield
    finally:
        for process in others:
            process.kill()
            process.communicate()


def seconds(kind: str, environment: Mapping[str, str], steps: int) -> float:
    """Seconds that the training itself took, without its start."""
    with tempfile.TemporaryDirectory() as folder, company(kind, environment, Path(folder) / "other"):
        output, _ = start(TRAINING, environment, str(steps), f"{folder}/run").communicate()
    return float(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--company", nargs="+", choices=COMPANY, default=list(COMPANY))
    parser.add_argument("--machine", default=platform.processor() or platform.machine(), help="its name in the file")
    parser.add_argument("--csv", type=Path, help="file to add the rows to")
    arguments = parser.parse_args()
    rows = []
    for number in range(arguments.rounds):
        for kind in arguments.company:
            for name in arguments.settings:
                load = os.getloadavg()[0]
                taken = seconds(kind, SETTINGS[name], arguments.steps)
                rows.append(
                    {
                        "machine": arguments.machine,
                        "company": kind,
                        "steps": arguments.steps,
                        "round": number,
                        "setting": name,
                        "seconds": round(taken, 2),
                    }
                )
                print(f"{kind}, {name}: {taken:.2f} s (load before {load:.1f})", flush=True)
    for kind in arguments.company:
        medians = {
            name: statistics.median(row["seconds"] for row in rows if (row["company"], row["setting"]) == (kind, name))
            for name in arguments.settings
        }
        print(f"{kind}: " + ", ".join(f"{name} {value:.2f} s" for name, value in medians.items()))
    if arguments.csv is not None:
        arguments.csv.parent.mkdir(parents=True, exist_ok=True)
        with arguments.csv.open("a", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            if not file.tell():
                writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
