"""Cut a handwritten digit out of a photograph, a scan or a drawing, and bring it to the form of MNIST.

The light is divided out, so that a shadow is no ink. Lines fainter than the ink, as of squared paper, stay below the
threshold. What leaves the picture, as a dark table around the page, is left out. Then the rule of MNIST: the ink is
scaled into 20×20, its centre of mass is the middle of 28×28. The studio's page does the same without a server, in
``written_digit.ts``; tests hold the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from torchcaps.data.optional import pillow_image

__all__ = ["DIGIT_SIDE", "Invert", "WrittenDigit", "find_digit", "read_digit"]

Invert = Literal["auto", "yes", "no"]
Plane = NDArray[np.float64]
Box = tuple[int, int, int, int]  # top, bottom, left, right; bottom and right lie outside

DIGIT_SIDE, DIGIT_BOX = 28, 20
WORKING_SIDE = (
    256  # larger pictures are scaled down; a digit smaller than a quarter of it is cut out and looked at again
)
NOISY_SIDE = 100  # smaller pictures are not photographs, and every pixel counts
GROUND_WINDOW = 0.2  # of the longer side, on both sides of a pixel: what is wider is no stroke
FAINTEST = 0.04  # less contrast than this is no ink
LEAST_OF_PEAK, MOST_OF_PEAK = 0.15, 0.6  # where the threshold lies, of the largest contrast
ABOVE_LINES = 1.3  # of the contrast that the paper has beside the ink
PAPER_SHARE = 0.98  # of the paper beside the ink has less contrast than its lines
SMALL_PART, FAR_PART = 0.04, 0.3  # of the ink's mass and size: what is smaller or farther away is no part of the digit
LEAST_SHARE = 0.2  # of all strong ink is the digit; the grain of an empty sheet is spread over many specks
LEAST_INSIDE = 0.12  # of the picture's longer side: a digit beside a dark edge is at least so large
STROKE_WIDTHS = (128, 64, 40, 24, 16, 10)  # parts of the shorter side, from thin to thick
SEEN_WIDTH = 0.15  # of the largest contrast: the first width with so much is that of the strokes
CLEARLY = 2.5  # times as much dark as bright, or the other way round


@dataclass(frozen=True)
class WrittenDigit:
    """A digit uint8 ``[28, 28]``, bright on black; whether it was dark on bright; where it lies, if there is one."""

    pixels: NDArray[np.uint8]
    inverted: bool
    box: Box | None


def read_digit(picture: Any, invert: Invert = "auto") -> WrittenDigit:
    """The digit on a grey picture of Pillow's, of any size; ``box`` is in pixels of what was looked at last."""
    image = pillow_image()
    scale = max(1.0, max(picture.size) / WORKING_SIDE)
    small = picture
    if scale > 1:
        width, height = (max(1, round(side / scale)) for side in picture.size)
        small = picture.resize((width, height), image.Resampling.BOX)
    found = find_digit(np.asarray(small, dtype=np.float64), invert)
    if found.box is None or scale == 1:
        return found
    top, bottom, left, right = found.box
    size = max(bottom - top, right - left)
    if size >= WORKING_SIDE / 4:
        return found
    edges = (max(0, left - size), max(0, top - size), min(small.width, right + size), min(small.height, bottom + size))
    closer = picture.crop(tuple(round(edge * scale) for edge in edges))
    return read_digit(closer, "yes" if found.inverted else "no")


def find_digit(grey: Plane, invert: Invert = "auto") -> WrittenDigit:
    """The digit on a grey picture ``[H, W]`` from 0 to 255, at most 256 pixels a side."""
    smooth = _blurred(grey) if max(grey.shape) > NOISY_SIDE else grey
    inverted = invert == "yes" or (invert == "auto" and _dark_on_bright(smooth))
    paper = smooth if inverted else 255 - smooth
    ink = _ink(_contrast(paper, None), inside=False)
    if ink is not None and ink.cut_off:  # a digit that was cropped tightly, or one beside the edge of a page
        ink = _ink(_contrast(paper, _quantile(paper, 0.9)), inside=True)
    if ink is None:
        return WrittenDigit(np.zeros((DIGIT_SIDE, DIGIT_SIDE), dtype=np.uint8), inverted, None)
    top, bottom, left, right = ink.box
    return WrittenDigit(_mnist_form(ink.values[top:bottom, left:right]), inverted, ink.box)


def _dark_on_bright(grey: Plane) -> bool:
    """The strokes are the thinnest things that stand out; where neither side is clear, the border is paper."""
    found = []
    for part in STROKE_WIDTHS:
        reach = max(1, _rounded(min(grey.shape) / part))
        dark, bright = _filled(grey, reach, None) - grey, _filled(-grey, reach, None) + grey
        found.append((float((dark**2).mean()), float((bright**2).mean())))
    most = max(max(pair) for pair in found)
    dark_ink, bright_ink = next(pair for pair in found if max(pair) >= SEEN_WIDTH * most)
    if max(dark_ink, bright_ink) < CLEARLY * min(dark_ink, bright_ink) or most < 1:
        return float(np.concatenate([grey[0], grey[-1], grey[:, 0], grey[:, -1]]).mean()) > 127.5
    return dark_ink > bright_ink


def _contrast(paper: Plane, outside: float | None) -> Plane:
    """How much darker each pixel is than the paper around it, as a share; ``outside`` is what lies around the picture.

    The edge of the picture goes on outside where nothing is given, so that what leaves it is no stroke.
    """
    ground = _filled(paper, max(2, int(max(paper.shape) * GROUND_WINDOW)), outside)
    share = (ground - paper) / np.maximum(np.maximum(ground, 0.5 * _quantile(ground, 0.9)), 1)
    return np.asarray((share - _quantile(share, 0.5)).clip(min=0))  # the ground is the top of the noise


@dataclass(frozen=True)
class _Ink:
    """Ink from 0 to 1 ``[H, W]``, its box, and whether it touches the edge of the picture."""

    values: Plane
    box: Box
    cut_off: bool


@dataclass(frozen=True)
class _Part:
    """A connected piece of ink."""

    label: int
    mass: float
    peak: float
    box: Box
    cut_off: bool

    @property
    def size(self) -> int:
        top, bottom, left, right = self.box
        return max(bottom - top, right - left)

    def distance(self, other: _Part) -> int:
        (top, bottom, left, right), (up, down, west, east) = self.box, other.box
        return max(top - down, up - bottom, left - east, west - right)


def _ink(contrast: Plane, inside: bool) -> _Ink | None:
    """The heaviest piece of ink and its neighbours; ``inside`` prefers pieces that do not touch the edge."""
    peak = float(contrast.max())
    if peak < FAINTEST:
        return None
    threshold = _threshold(contrast, peak)
    labels, parts = _parts(contrast, contrast > threshold)
    strong = [part for part in parts if part.peak >= MOST_OF_PEAK * peak]
    if inside:
        least = LEAST_INSIDE * max(contrast.shape)
        strong = [part for part in strong if not part.cut_off and part.size > least] or strong
    main = max(strong, key=lambda part: part.mass)
    digit = [
        part
        for part in parts
        if part.mass >= SMALL_PART * main.mass
        and part.distance(main) < FAR_PART * main.size
        and part.cut_off <= main.cut_off
    ]
    if sum(part.mass for part in digit) < LEAST_SHARE * sum(part.mass for part in strong):
        return None
    mask = np.isin(labels, [part.label for part in digit])
    core = contrast[mask & (contrast > 0.5 * peak)]
    full = max(_quantile(core, 0.5), 1.2 * threshold)
    near = _largest(np.pad(mask.astype(np.float64), 2), 2)
    values = ((contrast - threshold / 2) / (full - threshold / 2)).clip(0, 1) * near
    tops, bottoms, lefts, rights = zip(*(part.box for part in digit), strict=True)
    return _Ink(values, (min(tops), max(bottoms), min(lefts), max(rights)), main.cut_off)


def _threshold(contrast: Plane, peak: float) -> float:
    """Above the lines of the paper, which are looked for where no strong ink is near."""
    strong = _largest(np.pad((contrast > 0.5 * peak).astype(np.float64), 3), 3) > 0
    beside = contrast[~strong]
    lines = _quantile(beside, PAPER_SHARE) if beside.size else 0.0
    return min(max(LEAST_OF_PEAK * peak, ABOVE_LINES * lines), MOST_OF_PEAK * peak)


def _parts(contrast: Plane, mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], list[_Part]]:
    """Number the pieces that hang together, also over corners, from 1; measure each."""
    labels = _labelled(mask)
    ys, xs = mask.nonzero()
    names = labels[ys, xs] - 1
    count = int(labels.max())
    mass = np.bincount(names, contrast[ys, xs], count)
    peak, ends = np.zeros(count), np.zeros((2, count), dtype=np.int64)
    starts = np.full((2, count), max(mask.shape))
    np.maximum.at(peak, names, contrast[ys, xs])
    for axis, places in enumerate((ys, xs)):
        np.minimum.at(starts[axis], names, places)
        np.maximum.at(ends[axis], names, places + 1)
    parts = []
    for n in range(count):
        (top, left), (bottom, right) = starts[:, n].tolist(), ends[:, n].tolist()
        cut_off = top == 0 or left == 0 or bottom == mask.shape[0] or right == mask.shape[1]
        parts.append(_Part(n + 1, float(mass[n]), float(peak[n]), (top, bottom, left, right), cut_off))
    return labels, parts


def _labelled(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Runs of each row are joined with those of the row above that they touch."""
    parent: list[int] = []

    def root(run: int) -> int:
        while parent[run] != run:
            parent[run] = parent[parent[run]]
            run = parent[run]
        return run

    runs: list[tuple[int, int, int]] = []
    above: list[tuple[int, int, int]] = []
    for y, row in enumerate(np.pad(mask, ((0, 0), (1, 1))).astype(np.int8)):
        here = []
        for start, end in np.flatnonzero(np.diff(row)).reshape(-1, 2).tolist():
            number = len(parent)
            parent.append(number)
            here.append((start, end, number))
            runs.append((y, start, end))
            for other_start, other_end, other in above:
                if other_start <= end and start <= other_end:
                    parent[root(number)] = root(other)
        above = here
    labels = np.zeros(mask.shape, dtype=np.int64)
    names: dict[int, int] = {}
    for number, (y, start, end) in enumerate(runs):
        labels[y, start:end] = names.setdefault(root(number), len(names) + 1)
    return labels


def _mnist_form(ink: Plane) -> NDArray[np.uint8]:
    """Scaled into 20×20, the whitest pixel white, the centre of mass in the middle of ``[28, 28]``."""
    scale = DIGIT_BOX / max(ink.shape)
    height, width = (max(1, _rounded(side * scale)) for side in ink.shape)
    digit = _shares(ink.shape[0], height) @ ink @ _shares(ink.shape[1], width).T
    digit = digit / max(float(digit.max()), 1e-6)
    mass = max(float(digit.sum()), 1e-6)
    middles = (float(digit.sum(axis=1) @ np.arange(height)) / mass, float(digit.sum(axis=0) @ np.arange(width)) / mass)
    top, left = (
        min(max(0, _rounded((DIGIT_SIDE - 1) / 2 - middle)), DIGIT_SIDE - side)
        for middle, side in zip(middles, digit.shape, strict=True)
    )
    canvas = np.zeros((DIGIT_SIDE, DIGIT_SIDE), dtype=np.uint8)
    canvas[top : top + height, left : left + width] = np.floor(digit * 255 + 0.5)
    return canvas


def _shares(before: int, after: int) -> Plane:
    """How much of each new pixel is covered by each old one, ``[after, before]``; every row sums to 1."""
    edges = np.arange(after + 1) * (before / after)
    old = np.arange(before)
    covered = np.minimum(edges[1:, None], old + 1) - np.maximum(edges[:-1, None], old)
    return np.asarray(covered.clip(min=0) * (after / before))


def _filled(values: Plane, reach: int, outside: float | None) -> Plane:
    """Grey closing: dark things that are narrower than 2 · reach + 1 pixels become as bright as what is around them."""
    margin = 2 * reach
    padded = np.pad(values, margin, mode="edge") if outside is None else np.pad(values, margin, constant_values=outside)
    return -_largest(-_largest(padded, reach), reach)


def _largest(values: Plane, reach: int) -> Plane:
    """The largest value of each window of 2 · reach + 1 pixels a side; ``reach`` pixels are lost on every side."""
    size = 2 * reach + 1
    for _ in range(2):
        values, window = values.T, 1
        while 2 * window <= size:
            values = np.maximum(values[:-window], values[window:])
            window *= 2
        if size > window:
            values = np.maximum(values[: window - size], values[size - window :])
    return values


def _blurred(values: Plane) -> Plane:
    """The mean of 3×3 pixels, which noise does not survive."""
    for _ in range(2):
        padded = np.pad(values, ((1, 1), (0, 0)), mode="edge")
        values = ((padded[:-2] + padded[1:-1] + padded[2:]) / 3).T
    return values


def _quantile(values: Plane, part: float) -> float:
    """The value that has this part of the others below it, one of them and no mean."""
    place = int(part * (values.size - 1))
    return float(np.partition(values, place, axis=None)[place])


def _rounded(value: float) -> int:
    """Half upwards, as the page's language rounds."""
    return int(np.floor(value + 0.5))
