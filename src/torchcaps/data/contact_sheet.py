"""A picture of pictures: a row a class, to see at a glance what a data set holds, or what training makes of it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.data.augment import Augmentations
from torchcaps.data.optional import pillow_image
from torchcaps.data.source import Split

__all__ = ["as_trained_on", "contact_sheet"]

GAP = 2
LABEL_WIDTH = 96
SMALLEST_CELL = 48
BACKGROUND = (255, 255, 255)
INK = (40, 40, 40)


def contact_sheet(split: Split, classes: Sequence[str], columns: int = 10) -> Any:
    """The first ``columns`` pictures of each class, small ones enlarged by a whole factor, as a Pillow picture.

    Grey stays grey, three channels are colour, any other number shows the first channel (the left eye of a pair).
    """
    image = pillow_image()
    from PIL import ImageDraw, ImageFont  # after the line that explains a missing Pillow

    accented = getattr(ImageFont, "load_default_imagefont", None)  # which Pillow 10 has not
    height, width = split.images.shape[2:]
    factor = max(1, -(-SMALLEST_CELL // max(height, width)))
    cell_height, cell_width = height * factor, width * factor
    size = (LABEL_WIDTH + columns * (cell_width + GAP) + GAP, len(classes) * (cell_height + GAP) + GAP)
    sheet = image.new("RGB", size, BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    for row, name in enumerate(classes):
        top = GAP + row * (cell_height + GAP)
        middle = (GAP, top + cell_height // 2 - 6)
        if name.isascii() or accented is None:
            draw.text(middle, _drawable(name, "ascii"), fill=INK)
        else:
            draw.text(middle, _drawable(name, "latin-1"), fill=INK, font=accented())
        for column, index in enumerate(_of_class(split, row)[:columns].tolist()):
            picture = _rgb(split.images[index].numpy()).repeat(factor, axis=0).repeat(factor, axis=1)
            sheet.paste(image.fromarray(picture), (LABEL_WIDTH + GAP + column * (cell_width + GAP), top))
    return sheet


def as_trained_on(
    split: Split, classes: Sequence[str], augment: Augmentations, columns: int = 10, seed: int = 0
) -> Split:
    """A split for :func:`contact_sheet`: one picture of each class as it is measured, then as training sees it.

    What an augmentation leaves outside of black and white, as standardising does, is brought back in for the eye.
    """
    images, labels = [], []
    for row in range(len(classes)):
        for index in _of_class(split, row)[:1]:
            repeated = split.images[index].expand(columns - 1, -1, -1, -1)
            counter = index + torch.arange(columns - 1) * len(split)
            images += [augment.evaluate(split.images[index][None]), augment(repeated, counter, seed)]
            labels += [row] * columns
    pictures = torch.stack([_whole_levels(picture) for part in images for picture in part])
    return type(split)(pictures, torch.tensor(labels))


def _of_class(split: Split, row: int) -> Tensor:
    """Positions of the examples that show this class."""
    shown = split.labels == row if split.labels.ndim == 1 else split.labels[:, row]
    return shown.nonzero()[:, 0]


def _whole_levels(picture: Tensor) -> Tensor:
    if picture.dtype == torch.uint8:
        return picture
    low, high = picture.min().clamp(max=0), picture.max().clamp(min=1)
    return ((picture - low) / (high - low) * 255).round().to(torch.uint8)


def _rgb(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """uint8 ``[C, H, W]`` → ``[H, W, 3]``."""
    colours = picture if picture.shape[0] == 3 else picture[:1].repeat(3, axis=0)
    return np.ascontiguousarray(colours.transpose(1, 2, 0))


def _drawable(name: str, alphabet: str) -> str:
    """Pillow's usual font knows ASCII, its older one Latin-1; other letters lose their marks, or are a question mark.

    >>> _drawable("Grüße, Šárka", "latin-1"), _drawable("Grün", "ascii")
    ('Grüße, Sárka', 'Grun')
    """
    letters = unicodedata.normalize("NFC", name)
    bare = (unicodedata.normalize("NFD", letter)[0] for letter in letters)
    drawn = [
        letter.encode(alphabet, "ignore") or other.encode(alphabet, "replace")
        for letter, other in zip(letters, bare, strict=True)
    ]
    return b"".join(drawn).decode(alphabet)[:15]
