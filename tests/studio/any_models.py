"""Tiny untrained networks of every kind that the library has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import torchcaps
from torchcaps.models import CapsuleModel
from torchcaps.nn.routing.registry import routing_class

__all__ = ["NETWORKS", "ROUTINGS", "save_network"]

SMALL: dict[str, dict[str, Any]] = {
    "capsnet": {"conv_channels": 4, "primary_types": 2, "decoder_hidden": (8, 8)},
    "capsnet-deep": {"channels": 4, "types": (2,), "depth": 1, "dim": 4, "capsule_dim": 6, "decoder": "conv"},
    "efficient-capsnet": {"decoder": "fc", "decoder_hidden": (8, 8)},
    "matrix-capsules": {"A": 4, "B": 2, "C": 2, "D": 2},
}
ROUTINGS = [name for name in torchcaps.list_routings() if routing_class(name).__module__.startswith("torchcaps.")]
ARCHITECTURES = sorted(
    kind.architecture for kind in CapsuleModel.__subclasses__() if kind.__module__.startswith("torchcaps.")
)
NETWORKS: dict[str, dict[str, Any]] = {
    **{name: {"name": name, **SMALL.get(name, {})} for name in ARCHITECTURES},
    **{f"capsnet-{routing}": {"name": "capsnet", **SMALL["capsnet"], "routing": routing} for routing in ROUTINGS},
    "matrix-capsules-drawing": {"name": "matrix-capsules", **SMALL["matrix-capsules"], "decoder": "fc"},
    "capsnet-silent": {"name": "capsnet", **SMALL["capsnet"], "decoder": "none"},
    "capsnet-positions": {"name": "capsnet", **SMALL["capsnet"], "shared_weights": "positions"},
}


def save_network(folder: Path, name: str) -> Path:
    """A folder of this name that the studio can open."""
    torch.manual_seed(0)
    model = torchcaps.create_model(**NETWORKS[name])
    with torch.no_grad():  # start values of exactly 0 would leave some parameters without a part in the result
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
    model.save_pretrained(folder / name)
    return folder / name
