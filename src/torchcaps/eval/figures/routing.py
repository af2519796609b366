"""Routing seen on one picture: where the votes of the lower capsules go, iteration by iteration."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from torchcaps.eval.figures.style import BLUE, VERMILION, matplotlib, styled
from torchcaps.models import CapsNet, CapsNetOutput
from torchcaps.nn import longest_class

__all__ = ["routing_figure", "routing_maps"]


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


@styled
@torch.no_grad()
def routing_figure(model: CapsNet, image: Tensor, classes: tuple[str, ...] = ()) -> Any:
    """The picture ``[C, H, W]``, its reconstruction, the class lengths, and a map for each iteration and class."""
    matplotlib()
    output = model(image.unsqueeze(0))
    maps = routing_maps(model, image)
    R, J = maps.shape[:2]
    names = classes or tuple(map(str, range(J)))
    figure_class = importlib.import_module("matplotlib.figure").Figure
    figure = figure_class(figsize=(2.6 + 0.95 * J, 1.7 + 1.15 * R), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[2.6, 0.95 * J])
    _draw_pictures(left, model, image, output, names)
    axes = right.subplots(R + 1, J, squeeze=False, height_ratios=[0.7] + [1] * R)
    _draw_lengths(axes[0], output.lengths[0], names)
    _draw_maps(right, axes[1:], maps)
    right.suptitle("Where the lower capsules of each position send their votes", fontsize=11)
    return figure


def _draw_pictures(area: Any, model: CapsNet, image: Tensor, output: CapsNetOutput, names: tuple[str, ...]) -> None:
    winner = longest_class(output.lengths)
    pictures = {"input": image}
    if model.decoder is not None:
        pictures[f"drawn from capsule {names[int(winner)]}"] = model.reconstruct(output.capsules, winner)[0]
    for axis, (title, picture) in zip(
        area.subplots(len(pictures), 1, squeeze=False)[:, 0], pictures.items(), strict=True
    ):
        axis.imshow(picture.movedim(0, -1).squeeze(-1).clamp(0, 1).cpu().numpy(), cmap="gray", vmin=0, vmax=1)
        axis.set_title(title, loc="center")
        axis.axis("off")


def _draw_lengths(axes: Any, lengths: Tensor, names: tuple[str, ...]) -> None:
    winner = int(lengths.argmax())
    for j, axis in enumerate(axes):
        colour = VERMILION if j == winner else BLUE
        axis.bar([0], [float(lengths[j])], color=colour, width=0.6)
        axis.set(ylim=(0, 1), xlim=(-1, 1), xticks=[], yticks=[0, 1] if j == 0 else [])
        axis.set_title(names[j], loc="center", color=colour, fontweight="bold" if j == winner else "normal")
    axes[0].set_ylabel("length")


def _draw_maps(area: Any, axes: Any, maps: Tensor) -> None:
    """Against the first iteration, which gives every class an equal share."""
    change = ((maps - maps[0]) / maps[0].clamp(min=1e-12)).cpu().numpy()
    limit = max(float(abs(change).max()), 1e-6)
    for r, row in enumerate(axes):
        for j, axis in enumerate(row):
            shown = axis.imshow(change[r, j], cmap="PuOr_r", vmin=-limit, vmax=limit)
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set_visible(True)
        row[0].set_ylabel(f"iteration {r + 1}")
    scale = area.colorbar(shown, ax=axes.ravel().tolist(), shrink=0.8)
    scale.ax.yaxis.set_major_formatter("{x:+.0%}")
    scale.set_label("against an equal share")
