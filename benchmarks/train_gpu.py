"""Train by a recipe on this machine's GPU: images a second, step time, peak memory, and the test error at the end.

    PYTHONPATH=src python -m benchmarks.train_gpu mnist-official training.epochs=5 --data-dir local --out out/train-gpu
    PYTHONPATH=src python -m benchmarks.train_gpu mnist-official training.epochs=5 --compare --data-dir local

``--compare`` takes 600 steps each in plain PyTorch, captured, compiled, and both. The test set is read once, after
training, by the last (or averaged) weights.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

from torchcaps.data import Source
from torchcaps.train import Recipe, RunResult, fit, load_recipe
from torchcaps.train.distributed import choose_device
from torchcaps.train.feed import load_source
from torchcaps.train.studies.measure import Measurement

MODES = {
    "plain": ("training.compile=off", "training.capture=off"),
    "captured": ("training.compile=off", "training.capture=on"),
    "compiled": ("training.compile=on", "training.capture=off"),
    "compiled and captured": ("training.compile=on", "training.capture=on"),
}
TEST_PAIRS = 1_000_000


def test_error(result: RunResult, recipe: Recipe, source: Source, device: torch.device) -> dict[str, float]:
    """Wrong examples of the test split."""
    if source.test is None:
        return {}
    error = Measurement(recipe, source, "test", device, TEST_PAIRS).error(result.load_model())
    return {"test_error_percent": round(error.percent, 4), "test_wrong": error.count, "test_examples": error.total}


def summary(result: RunResult, batch_size: int, wall_seconds: float) -> dict[str, object]:
    """What the log of a run says about its speed; the first fifth (compilation, warm-up) is left out."""
    lines = [json.loads(line) for line in (result.folder / "metrics.jsonl").read_text().splitlines()]
    train = [line for line in lines if line["kind"] == "train"]
    steady = train[max(1, len(train) // 5) :] or train
    rates = sorted(line["images_per_second"] for line in steady)
    span = steady[-1]["seconds"] - steady[0]["seconds"]
    images = (steady[-1]["step"] - steady[0]["step"]) * batch_size
    return {
        "mode": train[-1]["mode"],
        "steps": result.steps,
        "images_per_second_median": statistics.median(rates),
        "images_per_second_p20": rates[len(rates) // 5],
        "images_per_second_sustained": round(images / span) if span else None,
        "step_ms_median": statistics.median(line["step_ms"] for line in steady),
        "training_seconds": round(result.seconds, 2),
        "wall_seconds": round(wall_seconds, 2),
        "peak_memory_gib": round(max(line.get("peak_memory_bytes", 0) for line in train) / 2**30, 3),
        "last_loss": train[-1]["loss"],
        "notes": [line["text"] for line in lines if line["kind"] == "note"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=Path("out/train-gpu"))
    parser.add_argument("--compare", action="store_true", help="600 steps in each mode in place of one run")
    arguments = parser.parse_args()
    device = choose_device(arguments.device)
    source = load_source(load_recipe(arguments.recipe, arguments.overrides), arguments.data_dir)
    runs = (
        {name: (*changes, "training.steps=600") for name, changes in MODES.items()} if arguments.compare else {"": ()}
    )
    for name, changes in runs.items():
        recipe = load_recipe(
            arguments.recipe,
            [*arguments.overrides, *changes, f"seed={arguments.seed}", "log.tensorboard=off"],
        )
        folder = arguments.out / f"{arguments.recipe}-seed{arguments.seed}{'-' if name else ''}{name.replace(' ', '-')}"
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        start = time.perf_counter()
        result = fit(recipe, device=arguments.device, run_dir=folder, source=source, progress=not arguments.compare)
        found = summary(result, recipe.training.batch_size, time.perf_counter() - start)
        if not arguments.compare:
            found |= test_error(result, recipe, source, device)
        print(
            json.dumps({"recipe": arguments.recipe, "seed": arguments.seed, "folder": str(folder), **found}, indent=2)
        )


if __name__ == "__main__":
    main()
