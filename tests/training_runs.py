"""What the training tests share: a tiny network, tiny data, and a look at what a run left behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from torchcaps.data.source import Source, TestSplit, TrainSplit
from torchcaps.train import Recipe, fit, load_recipe

TINY = (
    "model.conv_channels=8",
    "model.primary_types=2",
    "model.decoder_hidden=[16]",
    "training.batch_size=10",
    "log.every=1",
    "log.tensorboard=off",
)


def tiny_recipe(*changes: str) -> Recipe:
    return load_recipe("demo", [*TINY, "training.steps=8", "log.checkpoint_every=3", *changes])


def train_tiny(folder: Path, *changes: str, **options: Any) -> Path:
    return fit(tiny_recipe(*changes), run_dir=folder, device="cpu", progress=False, **options).folder


def weights(run: Path, part: str = "final") -> dict[str, Tensor]:
    return load_file(run / part / "model.safetensors")


def same_weights(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def records(run: Path, kind: str = "train") -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == kind]


def losses(run: Path) -> list[float]:
    return [record["loss"] for record in records(run)]


def random_source(shape: tuple[int, int, int], count: int = 12, classes: int = 10) -> Source:
    images = torch.randint(0, 256, (count, *shape), dtype=torch.uint8)
    labels = torch.arange(count) % classes
    train, test = TrainSplit(images, labels), TestSplit(images[:2], labels[:2])
    return Source("random", train, test, tuple(map(str, range(classes))), "none", "made by the test")
