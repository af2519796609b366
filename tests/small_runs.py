"""Small runs, trained in seconds on the embedded digits and written in the form of a run folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import torch

import torchcaps
from torchcaps.data import MultiMNIST, sample_digits, validation_split
from torchcaps.data.loader import Loader
from torchcaps.data.multi_loader import MultiLoader
from torchcaps.eval import evaluate, exact_match_error
from torchcaps.models import CapsNet

RECIPE = """\
name = "small"
seed = {seed}

[model]
name = "capsnet"
conv_channels = 16
primary_types = 4

[data]
source = "mnist-sample"
task = "{task}"
variant = "paper"
validation = 0.1

[training]
batch_size = 50
steps = {steps}
"""


def train_small_run(folder: Path, *, seed: int = 0, steps: int = 40, pairs: bool = False) -> Path:
    """Train a small CapsNet and write recipe, environment, metrics, one checkpoint and the final model."""
    torch.manual_seed(seed)
    size = 36 if pairs else 28
    model = CapsNet(image_shape=(1, size, size), conv_channels=16, primary_types=4, decoder_hidden=(64, 128))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    objective = model.make_loss()
    lines = []
    for step, (images, labels, targets) in enumerate(_batches(pairs, seed, steps), start=1):
        out = model(images)
        if pairs:
            singles = [model.reconstruct(out.capsules, labels[:, place]) for place in range(2)]
            drawn = torch.stack(singles, dim=1).flatten(0, 1)
            present = torchcaps.ops.multi_hot(labels, 10)
            loss = torchcaps.ops.margin_loss(out.lengths, present)
            loss = loss + 0.01 * torchcaps.ops.reconstruction_loss(drawn, targets.flatten(0, 1), scale=1.0)
        else:
            loss = objective(out.lengths, labels, model.reconstruct(out.capsules, labels), targets).total
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        wrong = exact_match_error(out.lengths.detach(), labels).share
        lines.append(
            {"kind": "train", "step": step, "epoch": step / 20, "loss": loss.item(), "error": wrong, "lr": 4e-3}
        )
        if step % 20 == 0 and not pairs:
            lines.append({"kind": "validation", "step": step, "error": _held_out_error(model), "examples": 100})
    (folder / "checkpoints").mkdir(parents=True)
    model.save_pretrained(folder / "checkpoints" / f"step-{steps:08d}")
    model.save_pretrained(folder / "final")
    task = "multimnist" if pairs else "single"
    (folder / "recipe.toml").write_text(RECIPE.format(seed=seed, steps=steps, task=task), encoding="utf-8")
    (folder / "environment.json").write_text(
        json.dumps(
            {"torchcaps": torchcaps.__version__, "seed": seed, "device": "cpu", "data": {"classes": list("0123456789")}}
        )
    )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text + '{"step": 41, "lo')  # killed while it wrote
    return folder


def _held_out_error(model: CapsNet) -> float:
    """Share of wrong answers on digits of the training set."""
    return evaluate(model, validation_split(sample_digits("train"))[1]).error.share


def _batches(pairs: bool, seed: int, steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    if pairs:
        multi = MultiLoader(MultiMNIST(sample_digits("train")), batch_size=50, seed=seed)
        for step in range(steps):
            multi.prepare(step)
            batch = multi.step_batch(torch.tensor(step))
            yield batch.images, batch.labels, batch.singles
        return
    loader = Loader(sample_digits("train"), batch_size=50, seed=seed)
    for step in range(steps):
        loader.prepare(step)
        single = loader.step_batch(torch.tensor(step))
        yield single.images, single.labels, single.images


def shared_run(root: Path, kind: str) -> Path:
    """A run that is trained on first use below ``root`` and only looked at: ``"small"``, ``"other"`` or ``"pairs"``."""
    folder = root / "shared-runs" / kind
    if not folder.exists():
        settings = {"small": {}, "other": dict(seed=1, steps=20), "pairs": dict(steps=10, pairs=True)}[kind]
        train_small_run(folder, **settings)
    return folder
