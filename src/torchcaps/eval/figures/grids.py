"""Pictures in rows and columns with their labels: reconstructions, Fig. 4 and Fig. 5 of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.eval.drawings import TWEAKS
from torchcaps.eval.figures.style import LETTER_INCHES, SLANT, new_figure, short, short_names, styled

__all__ = [
    "captioned_pictures",
    "difference_colours",
    "dimension_figure",
    "displayable",
    "pairs_figure",
    "picture_grid",
    "reconstruction_figure",
]

CELL_INCHES = 0.6
LONGEST_NAME, LONGEST_LINE = 28, 20  # letters of a class above a column, of a line below a picture
TOO_BRIGHT = (0xD5 / 255, 0x5E / 255, 0x00 / 255)  # vermilion
TOO_DARK = (0x56 / 255, 0xB4 / 255, 0xE9 / 255)  # sky blue
FIRST_DIGIT, SECOND_DIGIT = (1.0, 0.62, 0.0), (0.2, 0.72, 1.0)  # orange and sky blue, as light on black


def displayable(images: Tensor) -> Tensor:
    """Pictures in 0 … 1; those that were standardised are stretched from their darkest to their brightest value."""
    images = images.detach().float().cpu()
    if not len(images) or (float(images.min()) >= 0 and float(images.max()) <= 1):
        return images
    low, high = images.flatten(1).amin(1), images.flatten(1).amax(1)
    shape = (-1, *[1] * (images.ndim - 1))
    return (images - low.view(shape)) / (high - low).clamp(min=1e-6).view(shape)


def difference_colours(reconstruction: Tensor, images: Tensor) -> Tensor:
    """Where a reconstruction is too bright (vermilion) or too dark (blue): ``[B, C, H, W]`` → ``[B, 3, H, W]``."""
    difference = (reconstruction - images).mean(dim=1, keepdim=True).clamp(-1, 1)
    bright, dark = (torch.tensor(colour).view(1, 3, 1, 1) for colour in (TOO_BRIGHT, TOO_DARK))
    return difference.clamp(min=0) * bright + (-difference).clamp(min=0) * dark


@styled
def picture_grid(
    rows: Sequence[Sequence[Tensor | None]],
    row_labels: Sequence[str] = (),
    column_labels: Sequence[str] = (),
    title: str = "",
    column_title: str = "",
    captions: Sequence[str] = (),
) -> Any:
    """Pictures ``[C, H, W]`` in rows; ``None`` leaves a place free. ``captions`` stand below the columns."""
    height, width = next(picture.shape[-2:] for row in rows for picture in row if picture is not None)
    gap = max(1, round(min(height, width) / 14))
    columns = max(len(row) for row in rows)
    sheet = np.zeros((len(rows) * (height + gap) - gap, columns * (width + gap) - gap, 4), np.float32)
    for i, row in enumerate(rows):
        for j, picture in enumerate(row):
            if picture is not None:
                top, left = i * (height + gap), j * (width + gap)
                sheet[top : top + height, left : left + width] = _opaque(picture)
    across, down = CELL_INCHES * columns, CELL_INCHES * len(rows) * height / width
    label_inches = 0.1 * max((len(label) for label in row_labels), default=0)
    heading_inches = 0.25 * (bool(title) + bool(column_title) + bool(column_labels) + 2 * bool(captions))
    column_labels = short_names(column_labels, LONGEST_NAME)
    slanted, upright = _slant(column_labels), _slant(line for caption in captions for line in caption.splitlines())
    overhang = SLANT * slanted
    figure, axes = new_figure(across + label_inches + overhang + 0.2, down + heading_inches + overhang + upright + 0.2)
    axes.imshow(sheet, interpolation="none", aspect="equal")
    column_places = [j * (width + gap) + (width - 1) / 2 for j in range(columns)]
    row_places = [i * (height + gap) + (height - 1) / 2 for i in range(len(rows))]
    axes.set_yticks(row_places[: len(row_labels)], list(row_labels))
    axes.set_xticks(column_places[: len(captions)], list(captions), fontsize=8, rotation=90 if upright else 0)
    upper = axes.secondary_xaxis("top")
    upper.set_xticks(column_places[: len(column_labels)], column_labels)
    if slanted:
        for label in upper.get_xticklabels():
            label.set(rotation=45, ha="left", rotation_mode="anchor")
    upper.set_xlabel(column_title)
    for place in (axes, upper):
        place.tick_params(length=0)
        place.spines[:].set_visible(False)
    if title:
        figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return figure


def _slant(labels: Iterable[str]) -> float:
    """Inches of the longest label where one is wider than a column, so that all of them must be turned; else 0."""
    longest = LETTER_INCHES * max(map(len, labels), default=0)
    return longest if longest > CELL_INCHES else 0.0


@styled
def captioned_pictures(images: Tensor, captions: Sequence[str], columns: int = 11) -> Any:
    """Pictures ``[B, C, H, W]``, so many in a row, each with a caption of two or three short lines below it.

    The middle of a long line is left out.
    """
    images = displayable(images)
    columns = min(columns, len(images))
    height, width = images.shape[-2:]
    side = 1.5 * CELL_INCHES
    words, gap = round(0.5 * width), max(1, round(width / 4))
    row, column = height + words, width + gap
    rows = -(-len(images) // columns)
    sheet = np.zeros((rows * row, columns * column - gap, 4), np.float32)  # transparent where there is no picture
    figure, axes = new_figure(side * sheet.shape[1] / width, side * sheet.shape[0] / width)
    for place, (picture, caption) in enumerate(zip(images, captions, strict=True)):
        top, left = place // columns * row, place % columns * column
        sheet[top : top + height, left : left + width] = _opaque(picture)
        words_below = "\n".join(short(line, LONGEST_LINE) for line in caption.splitlines())
        axes.text(left + (width - 1) / 2, top + height + 1, words_below, fontsize=6.5, ha="center", va="top")
    axes.imshow(sheet, interpolation="none", aspect="equal")
    axes.set_axis_off()
    return figure


@styled
def reconstruction_figure(images: Tensor, drawn: Tensor, column_labels: Sequence[str], title: str = "") -> Any:
    """Three rows: input, reconstruction, difference; pictures ``[B, C, H, W]``."""
    images, drawn = displayable(images), displayable(drawn)
    rows = [list(images), list(drawn), list(difference_colours(drawn, images))]
    return picture_grid(rows, ("input", "reconstruction", "difference"), column_labels, title)


@styled
def dimension_figure(grid: Tensor, class_name: str, steps: Sequence[float] = TWEAKS) -> Any:
    """Fig. 4: a row a dimension, a column a step; ``grid`` is ``[D, S, C, H, W]``."""
    return picture_grid(
        [list(row) for row in displayable(grid)],
        [str(dimension + 1) for dimension in range(len(grid))],
        [f"{step:+.2f}".replace("-", "−") if step else "0" for step in steps],
        title=f"Each dimension of the capsule of class {short(class_name, LONGEST_NAME)}, moved and drawn",
        column_title="added to the dimension",
    )


@styled
def pairs_figure(images: Tensor, drawn: Tensor, columns: Sequence[tuple[str, str, str]], title: str = "") -> Any:
    """Fig. 5: the picture of two digits above, the two reconstructions in two colours below.

    Shape:
        images: ``[B, 1, H, W]``. drawn: ``[B, 2, 1, H, W]``.
        columns: what to write below each: L (true labels), R (capsules drawn from), P (what the model named).
    """
    images, drawn = displayable(images), displayable(drawn)
    first, second = (torch.tensor(colour).view(1, 3, 1, 1) for colour in (FIRST_DIGIT, SECOND_DIGIT))
    together = (drawn[:, 0] * first + drawn[:, 1] * second).clamp(max=1)
    captions = [
        "\n".join(f"{mark} {short(names, LONGEST_NAME)}" for mark, names in zip("LRP", column, strict=True))
        for column in columns
    ]
    rows = [list(images), list(together), list(drawn[:, 0] * first), list(drawn[:, 1] * second)]
    return picture_grid(rows, ("input", "both drawn", "first", "second"), title=title, captions=captions)


def _opaque(picture: Tensor) -> NDArray[np.float32]:
    """``[C, H, W]`` in 0 … 1 → RGBA ``[H, W, 4]``; of two or more than three channels the first is shown."""
    colours = picture if picture.shape[0] == 3 else picture[:1].expand(3, -1, -1)
    solid = torch.cat((colours, torch.ones_like(colours[:1]))).clamp(0, 1)
    return np.asarray(solid.permute(1, 2, 0).numpy(), dtype=np.float32)
