"""Runs on pictures of one's own, as training leaves them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import torchcaps

__all__ = ["CLASSES", "own_run"]

CLASSES = ("cat", "dog", "owl")


def own_run(
    folder: Path, source: Path, shape: tuple[int, int, int], classes: Sequence[str] = CLASSES, augment: str = ""
) -> Path:
    """A run folder of a network that has learned nothing; with ``augment`` its pictures are read at 40 pixels."""
    C, H, _ = shape
    torch.manual_seed(H + C)
    small: dict[str, Any] = {"conv_channels": 4, "primary_types": 2, "decoder_hidden": (8, 8)}
    model = torchcaps.create_model("capsnet", image_shape=shape, num_classes=len(classes), **small)
    model.save_pretrained(folder / "final")
    size = 40 if augment else H
    section = f'[data]\nsource = "folder:{source}"\nsize = {size}\nchannels = {C}\n{augment}'
    (folder / "recipe.toml").write_text(section, encoding="utf-8")
    facts = {"classes": list(classes), "name": f"folder:{source}"}
    (folder / "environment.json").write_text(json.dumps({"data": facts}))
    return folder
