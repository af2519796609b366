"""The demo recipe over several seeds: seconds of training and accuracy on the 500 test digits, on this machine.

    python -m benchmarks.demo_cpu --seeds 5 --out out/demo-cpu

Each seed leaves its run folder; ``results.json`` holds a line for each, and the mean. Run it on a machine that does
nothing else: two threads that wait for each other lose much more to a third process than its share.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path

import torch

from torchcaps.data import sample_digits
from torchcaps.eval import exact_match_error
from torchcaps.train import fit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("out/demo-cpu"))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    test = sample_digits("test")
    lines = []
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        overrides = [*arguments.overrides, "log.tensorboard=off"]
        result = fit("demo", overrides, seed=seed, device="cpu", run_dir=arguments.out / f"seed{seed}", progress=False)
        with torch.no_grad():
            scores = result.load_model()(test.images.float() / 255).scores
        wrong = exact_match_error(scores, test.labels)
        accuracy = round(100 * (1 - wrong.share), 2)
        lines.append({"seed": seed, "seconds": round(result.seconds, 1), "accuracy_percent": accuracy})
        print(json.dumps({**lines[-1], "load": os.getloadavg()[0]}), flush=True)
    summary = {
        "runs": lines,
        "mean_accuracy_percent": round(statistics.mean(line["accuracy_percent"] for line in lines), 3),
        "worst_accuracy_percent": min(line["accuracy_percent"] for line in lines),
        "longest_seconds": max(line["seconds"] for line in lines),
        "threads": arguments.threads,
        "torch": torch.__version__,
    }
    (arguments.out / "results.json").write_text(json.dumps(summary, indent=2) + "\n")
    print(json.dumps(summary, indent=2))


if __name__ == "__main__":
    main()
