"""Does the fused kernel train like plain PyTorch? The loss of 200 steps with and without it, for two seeds.

    PYTHONPATH=src python -m benchmarks.loss_curve --data-dir local --csv records/gpu-routing/loss_curve.csv

One seed fixes start values and data, so its two curves differ by rounding alone; two seeds differ by what training
is like anyway. The kernel passes when its distance from plain PyTorch is below the distance between the seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path

import torch

from benchmarks.gpu_timing import append_rows, device_line
from torchcaps.data import Source
from torchcaps.train import fit, load_recipe
from torchcaps.train.feed import load_source

SEEDS = (0, 1)
BACKENDS = {"fused": "triton", "plain": "eager"}


def loss_curve(backend: str, seed: int, steps: int, source: Source, device: str) -> list[float]:
    """The loss of every step of ``mnist-official``."""
    os.environ["TORCHCAPS_BACKEND"] = backend
    overrides = [f"training.steps={steps}", f"seed={seed}", "log.every=1", "log.tensorboard=off"]
    with tempfile.TemporaryDirectory() as folder:
        result = fit("mnist-official", overrides, device=device, run_dir=f"{folder}/run", source=source, progress=False)
        records = map(json.loads, (result.folder / "metrics.jsonl").read_text().splitlines())
        return [record["loss"] for record in records if record["kind"] == "train"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args()
    source = load_source(load_recipe("mnist-official"), options.data_dir)
    curves = {
        (name, seed): torch.tensor(loss_curve(backend, seed, options.steps, source, options.device))
        for name, backend in BACKENDS.items()
        for seed in SEEDS
    }
    if options.csv:
        rows = [
            {"step": step + 1, **{f"{name} seed {seed}": float(curve[step]) for (name, seed), curve in curves.items()}}
            for step in range(options.steps)
        ]
        append_rows(options.csv, [{**row, **device_line()} for row in rows])
    between_seeds = float((curves["plain", 0] - curves["plain", 1]).abs().mean())
    apart = {seed: float((curves["fused", seed] - curves["plain", seed]).abs().mean()) for seed in SEEDS}
    ends = {f"{name} seed {seed}": round(float(curve[-20:].mean()), 5) for (name, seed), curve in curves.items()}
    print(
        f"mean distance of two seeds {between_seeds:.2e}; fused from plain", {s: f"{a:.2e}" for s, a in apart.items()}
    )
    print("mean loss of the last 20 steps", ends)
    if max(apart.values()) > between_seeds:
        raise SystemExit("the fused kernel does not train like plain PyTorch")


if __name__ == "__main__":
    main()
