"""Routing seen on one picture: where the votes of the lower capsules go, iteration by iteration."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from torchcaps.errors import TorchcapsError
from torchcaps.models import CapsNet
from torchcaps.nn import longest_class

__all__ = ["routing_maps", "save_routing_picture"]


@torch.no_grad()
def routing_maps(model: CapsNet, image: Tensor) -> Tensor:
    """How much of what each position sees goes to each class: lower length × coefficient, mean over the types.

    Shape:
        image: ``[C, H, W]``. Returns ``[R, J, rows, columns]``.
    """
    lower = model.lower_capsules(image.unsqueeze(0))
    _, trace = model.classes.trace(lower)
    rows, columns, types = model.primary_grid
    weighted = trace.coefficients[:, 0] * lower[0].norm(dim=-1)[:, None]  # [R, I, J]
    return rearrange(weighted, "r (h w t) j -> r j h w t", h=rows, w=columns, t=types).mean(-1)


@torch.no_grad()
def save_routing_picture(model: CapsNet, image: Tensor, path: str | Path, classes: tuple[str, ...] = ()) -> Path:
    """Write a PNG: the picture, its reconstruction, the class lengths, and a map for each iteration and class."""
    plt = _pyplot()
    out = model(image.unsqueeze(0))
    maps = routing_maps(model, image)
    change = (maps - maps[0]) / maps[0].clamp(min=1e-12)  # the first iteration gives every class an equal share
    limit = max(float(change.abs().max()), 1e-6)
    R, J = maps.shape[:2]
    names = classes or tuple(map(str, range(J)))
    winner = int(longest_class(out.lengths))
    figure = plt.figure(figsize=(2.6 + 0.95 * J, 1.7 + 1.15 * R), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2.6, 0.95 * J])
    inputs = left.subplots(2, 1)
    pictures = [("input", image)]
    if model.decoder is not None:
        pictures.append(
            (f"drawn from capsule {names[winner]}", model.reconstruct(out.capsules, torch.tensor([winner]))[0])
        )
    for axis, (title, picture) in zip(inputs, pictures, strict=False):
        axis.imshow(picture.movedim(0, -1).squeeze(-1).clamp(0, 1).cpu(), cmap="gray", vmin=0, vmax=1)
        axis.set_title(title, fontsize=10)
    for axis in inputs:
        axis.axis("off")
    grid = right.subplots(R + 1, J, squeeze=False, height_ratios=[0.7] + [1] * R)
    for j in range(J):
        colour = "#D55E00" if j == winner else "#0072B2"
        bar = grid[0][j]
        bar.bar([0], [float(out.lengths[0, j])], color=colour, width=0.6)
        bar.set(ylim=(0, 1), xlim=(-1, 1), xticks=[], yticks=[0, 1] if j == 0 else [])
        bar.set_title(names[j], fontsize=10, color=colour, fontweight="bold" if j == winner else "normal")
        bar.spines[["top", "right"]].set_visible(False)
        for r in range(R):
            axis = grid[r + 1][j]
            shown = axis.imshow(change[r, j].cpu(), cmap="PuOr_r", vmin=-limit, vmax=limit)
            axis.set(xticks=[], yticks=[])
            if j == 0:
                axis.set_ylabel(f"iteration {r + 1}", fontsize=9)
    grid[0][0].set_ylabel("length", fontsize=9)
    scale = right.colorbar(shown, ax=grid[1:, :].ravel().tolist(), shrink=0.8, format="{x:+.0%}")
    scale.set_label("against an equal share", fontsize=9)
    right.suptitle("Where the lower capsules of each position send their votes", fontsize=11)
    return _save(figure, Path(path))


def _save(figure: Any, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".png", delete=False) as scratch:
        figure.savefig(scratch, dpi=110)
    os.replace(scratch.name, path)
    _pyplot().close(figure)
    return path


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise TorchcapsError('figures need matplotlib; run: pip install "torchcaps[figures]"') from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
