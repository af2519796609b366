"""A picture of pictures: a row a class, to see at a glance what a data set holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from torchcaps.data.optional import pillow_image
from torchcaps.data.source import Split

__all__ = ["contact_sheet"]

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
    from PIL import ImageDraw  # after the line that explains a missing Pillow

    height, width = split.images.shape[2:]
    factor = max(1, -(-SMALLEST_CELL // max(height, width)))
    cell_height, cell_width = height * factor, width * factor
    size = (LABEL_WIDTH + columns * (cell_width + GAP) + GAP, len(classes) * (cell_height + GAP) + GAP)
    sheet = image.new("RGB", size, BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    for row, name in enumerate(classes):
        top = GAP + row * (cell_height + GAP)
        draw.text((GAP, top + cell_height // 2 - 6), _printable(name), fill=INK)
        shown = split.labels == row if split.labels.ndim == 1 else split.labels[:, row]
        for column, index in enumerate(shown.nonzero()[:columns, 0].tolist()):
            picture = _rgb(split.images[index].numpy()).repeat(factor, axis=0).repeat(factor, axis=1)
            sheet.paste(image.fromarray(picture), (LABEL_WIDTH + GAP + column * (cell_width + GAP), top))
    return sheet


def _rgb(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """uint8 ``[C, H, W]`` → ``[H, W, 3]``."""
    colours = picture if picture.shape[0] == 3 else picture[:1].repeat(3, axis=0)
    return np.ascontiguousarray(colours.transpose(1, 2, 0))


def _printable(name: str) -> str:
    """The built-in font knows Latin letters only."""
    return name.encode("ascii", "replace").decode()[:15]
