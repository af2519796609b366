"""What routing decides in a trained network: the same weights with other numbers of iterations.

    python -m benchmarks.routing_share capsnet-mnist capsnet-multimnist --csv records/routing-share/share.csv

The weights were learned with the network's own R; more or fewer iterations at test time show how much of the answer the
last ones make. Entropy and parents are those of :func:`torchcaps.eval.measure_couplings` after the last iteration.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

import torchcaps
from benchmarks.gpu_timing import append_rows
from torchcaps import nn
from torchcaps.eval import choose_examples, load_model, measure_couplings, open_run
from torchcaps.eval.examples import Examples
from torchcaps.models import CapsNet

ITERATIONS = (1, 2, 3, 5, 10)
PICTURES_TRACED = 500
BATCH = 50


@dataclass(frozen=True)
class Share:
    """One network with one number of iterations."""

    network: str
    data: str
    trained_with: int
    iterations: int
    errors: int
    examples: int
    entropy: float
    parents: float
    longest: float  # mean length of the longest capsule


def with_iterations(model: CapsNet, iterations: int) -> CapsNet:
    """The same weights, routed so many times."""
    other = torchcaps.create_model(model.architecture, **{**model.settings, "iterations": iterations})
    other.load_state_dict(model.state_dict())
    return other.eval()  # type: ignore[return-value]


@torch.no_grad()
def measure(name: str, model: CapsNet, examples: Examples, iterations: int) -> Share:
    changed = with_iterations(model, iterations)
    error = examples.evaluate(changed).error
    positions = torch.arange(min(PICTURES_TRACED, len(examples))).split(BATCH)
    couplings = measure_couplings(changed, (examples.images(some) for some in positions))["classes"]
    longest = torch.cat([changed(examples.images(some)).lengths.amax(1) for some in positions]).mean()
    trained_with = int(model.settings["iterations"])
    last = couplings.entropy[-1], couplings.parents[-1]
    return Share(name, examples.name, trained_with, iterations, error.count, error.total, *last, float(longest))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--data", help="as for torchcaps evaluate; else what each model's recipe says")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--csv", type=Path)
    options = parser.parse_args(arguments)
    for name in options.models:
        run = open_run(name)
        model = load_model(run)
        if not isinstance(model, CapsNet) or not isinstance(model.classes.routing, nn.DynamicRouting):
            parser.error(f"{name} is no capsnet with dynamic routing")
        examples = choose_examples(run, model, options.data, "test", options.data_dir, options.pairs)
        for iterations in ITERATIONS:
            share = measure(name, model, examples, iterations)
            print(share, flush=True)
            if options.csv:
                append_rows(options.csv, [asdict(share)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
