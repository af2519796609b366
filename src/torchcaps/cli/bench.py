"""``torchcaps bench``: the benchmarks of the source tree."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from torchcaps.errors import TorchcapsError

__all__ = ["register"]

BENCHMARKS = {
    "capsnet_cpu": "CapsNet on a CPU: textbook, ours, bf16, and without routing",
    "data": "MultiMNIST, loader and augmentation, on the CPU or a GPU",
    "routing_family": "relatives of dynamic routing, handed votes and in one op, on the CPU or a GPU",
    "routing_gpu": "votes and routing alone on a GPU: textbook, eager, compiled, fused",
    "step_gpu": "the whole training step on a GPU, and what makes its convolutions fast",
    "studio_page": "the studio's page in a browser: slider, stroke, first paint, bundle",
    "studio": "the studio with 50 clients at once, or with --faults 10000 under attack",
    "train_gpu": "training by a recipe on a GPU, with the loader and the test error",
}
ON_ANY_MACHINE = ("capsnet_cpu", "data")
ON_A_GPU_ALONE = ("routing_gpu", "step_gpu")


def register(app: typer.Typer) -> None:
    app.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench)


def bench(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="One benchmark; without it, all that run on any machine.")] = None,
    list_names: Annotated[bool, typer.Option("--list", help="Say which there are.")] = False,
) -> None:
    """Measure speed and memory on this machine, as ratios in one run. What follows the name goes to the benchmark.

    **Examples**

        torchcaps bench --list

        torchcaps bench

        torchcaps bench capsnet_cpu --seconds 2
    """
    if list_names:
        for known, what in BENCHMARKS.items():
            typer.echo(f"{known:14} {what}")
        return
    if name is not None and name not in BENCHMARKS:
        raise TorchcapsError(f"no benchmark is named {name!r}; choose from {', '.join(BENCHMARKS)}")
    root = Path(__file__).parents[3]
    if not (root / "benchmarks" / "__init__.py").is_file():
        raise TorchcapsError(
            "the benchmarks are part of the source tree, not of the installed package; get the tree, "
            "install it there with: pip install -e . and call this again"
        )
    if name in ON_A_GPU_ALONE:
        import torch

        if not torch.cuda.is_available():
            others = ", ".join(ON_ANY_MACHINE)
            raise TorchcapsError(f"{name} measures a GPU, and PyTorch sees none here; on any machine run {others}")
    sys.path.insert(0, str(root))
    for chosen in [name] if name else ON_ANY_MACHINE:
        sys.argv = [f"benchmarks.{chosen}", *context.args]
        runpy.run_module(f"benchmarks.{chosen}", run_name="__main__")
