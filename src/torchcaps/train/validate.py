"""Errors on held-out examples, in large batches."""

from __future__ import annotations

import torch

from torchcaps.models import Model
from torchcaps.models.mode import evaluation_mode
from torchcaps.train.feed import Feed
from torchcaps.train.objective import is_wrong

__all__ = ["count_held_out_errors"]

BATCH = {"cuda": 2000, "cpu": 250}


@torch.no_grad()
def count_held_out_errors(model: Model, feed: Feed, precision: torch.dtype) -> int:
    """How many of the held-out examples are wrong, by the rule that training counts with."""
    device = feed.loader.device
    wrong = torch.zeros((), dtype=torch.int64, device=device)
    half = precision != torch.float32
    with evaluation_mode(model):
        for example in feed.held_out(BATCH.get(device.type, 250)):
            with torch.autocast(device.type, precision if half else None, enabled=half):
                scores = model(example.images).scores
            wrong += is_wrong(scores, example.labels).sum()
    return int(wrong)
