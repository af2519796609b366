"""How a model is shown a picture of somebody's own: one rule for every command and for the studio."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchcaps.data.augment import Augmentations
from torchcaps.data.readers.pictures import fit_inside, flat_picture
from torchcaps.data.readers.written_digit import DIGIT_SIDE, Invert, read_digit
from torchcaps.data.window import to_unit_float
from torchcaps.errors import TorchcapsError

__all__ = ["PictureForm", "SeenPicture"]


@dataclass(frozen=True)
class SeenPicture:
    """A picture as the model sees it, uint8 ``[C, H, W]``.

    ``inverted``: dark and bright were swapped. ``empty``: a model of digits finds no ink.
    """

    pixels: Tensor
    inverted: bool
    empty: bool = False


@dataclass(frozen=True)
class PictureForm:
    """What a picture becomes.

    Attributes:
        image_shape: of the model, ``(C, H, W)``.
        read_as: height and width to which a file is scaled before the recipe's fixed steps crop or place it.
        digits: the model reads handwritten digits, which are cut out and centred as MNIST was made.
        white_on_black: the model learned from a published set that is bright on black, so ink on paper is inverted.
        augment: the recipe's pipeline, of which the fixed steps act.
    """

    image_shape: tuple[int, int, int]
    read_as: tuple[int, int]
    digits: bool
    white_on_black: bool
    augment: Augmentations | None

    def check(self) -> None:
        """Raise when the model takes no picture files at all."""
        if self.image_shape[0] not in (1, 3):
            raise TorchcapsError(
                f"the model takes {self.image_shape[0]} channels, but picture files have 1 (grey) or 3 (colour)"
            )

    def flat(self, picture: Any) -> Any:
        """An open picture of Pillow's of any kind as :meth:`seen` takes it: upright, in 8 bits, grey or in colour."""
        return flat_picture(picture, grey=self.image_shape[0] == 1)

    def seen(self, flat: Any, invert: Invert = "auto") -> SeenPicture:
        """What the model sees of a flat picture of any size.

        ``auto`` inverts ink on paper where the model learned from white on black, and nothing else. A model of one's
        own pictures gets exactly what training and ``evaluate`` make of the file.
        """
        if not self.digits:
            pixels = fit_inside(flat, *self.read_as)
        elif (flat.height, flat.width) in ((DIGIT_SIDE, DIGIT_SIDE), self.image_shape[1:]):
            pixels = np.asarray(flat)[None]
        else:
            digit = read_digit(flat, invert)
            return self._digit(digit.pixels[None], digit.inverted)
        inverted = invert == "yes" or (invert == "auto" and self.white_on_black and _bright_border(pixels))
        pixels = 255 - pixels if inverted else np.array(pixels)
        if self.digits:
            return self._digit(pixels, inverted)
        images = torch.from_numpy(pixels)[None]
        return SeenPicture((images if self.augment is None else self.augment.placed(images))[0], inverted)

    def prepared(self, pixels: Tensor) -> Tensor:
        """What the model is called with, float ``[B, C, H, W]``, of pictures that were seen, uint8."""
        images = to_unit_float(pixels)
        standardize = None if self.augment is None else self.augment.standardize
        return images if standardize is None else standardize.evaluate(images)

    def _digit(self, digit: NDArray[np.uint8], inverted: bool) -> SeenPicture:
        """In the middle of a larger black canvas."""
        _, H, W = self.image_shape
        rows, columns = H - digit.shape[1], W - digit.shape[2]
        margins = ((0, 0), (rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2))
        return SeenPicture(torch.from_numpy(np.pad(digit, margins)), inverted, empty=not digit.any())


def _bright_border(pixels: NDArray[np.uint8]) -> bool:
    """Whether the outermost pixels of ``[C, H, W]`` are brighter than half on average."""
    inside = np.ones(pixels.shape[1:], dtype=bool)
    inside[1:-1, 1:-1] = False
    return float(pixels[:, inside].mean()) > 127.5
