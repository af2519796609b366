"""Photographs of handwritten digits, made by program: pen paths on paper, seen by a camera, the same for a seed.

Nothing is taken from a data set. Each digit has several pen paths; size, slant, pressure and every point vary.
The camera adds what photographs have: uneven light, a shadow, squared paper, a page that is rotated and seen at an
angle on a dark table, blur, noise and JPEG.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

KINDS = ("shadow", "squares", "turn", "blur", "all")
Grey = NDArray[np.float32]
Points = list[tuple[float, float]]

# Strokes in a box of width and height 1, y downwards; a sharp corner ends one stroke and begins the next.
PATHS: dict[int, list[list[Points]]] = {
    0: [
        [[(0.55, 0.02), (0.2, 0.15), (0.08, 0.5), (0.22, 0.86), (0.5, 0.98), (0.8, 0.84), (0.92, 0.5), (0.8, 0.15),
          (0.52, 0.02), (0.42, 0.05)]],
        [[(0.7, 0.06), (0.4, 0.04), (0.14, 0.3), (0.1, 0.65), (0.35, 0.97), (0.7, 0.88), (0.9, 0.55), (0.86, 0.2),
          (0.66, 0.04)]],
    ],
    1: [
        [[(0.55, 0.0), (0.52, 0.5), (0.5, 1.0)]],
        [[(0.25, 0.28), (0.42, 0.15), (0.56, 0.0)], [(0.56, 0.0), (0.55, 0.5), (0.54, 1.0)]],
    ],
    2: [
        [[(0.12, 0.25), (0.3, 0.04), (0.62, 0.02), (0.82, 0.2), (0.72, 0.48), (0.4, 0.78), (0.08, 0.98)],
         [(0.08, 0.98), (0.5, 0.96), (0.94, 0.97)]],
        [[(0.14, 0.2), (0.4, 0.0), (0.76, 0.1), (0.78, 0.38), (0.5, 0.7), (0.2, 0.95), (0.1, 0.86), (0.3, 0.78),
          (0.6, 0.93), (0.95, 0.92)]],
    ],
    3: [
        [[(0.15, 0.12), (0.45, 0.0), (0.78, 0.14), (0.72, 0.38), (0.42, 0.47)],
         [(0.42, 0.47), (0.78, 0.55), (0.86, 0.78), (0.6, 0.98), (0.3, 0.97), (0.1, 0.84)]],
        [[(0.12, 0.03), (0.5, 0.02), (0.84, 0.03)], [(0.84, 0.03), (0.62, 0.22), (0.42, 0.42)],
         [(0.42, 0.42), (0.76, 0.5), (0.86, 0.75), (0.62, 0.97), (0.3, 0.98), (0.1, 0.86)]],
    ],
    4: [
        [[(0.28, 0.02), (0.2, 0.35), (0.12, 0.62)], [(0.12, 0.62), (0.5, 0.6), (0.95, 0.58)],
         [(0.72, 0.1), (0.7, 0.55), (0.68, 1.0)]],
        [[(0.68, 0.0), (0.4, 0.34), (0.06, 0.68)], [(0.06, 0.68), (0.5, 0.67), (0.96, 0.68)],
         [(0.68, 0.0), (0.68, 0.5), (0.68, 1.0)]],
    ],
    5: [
        [[(0.24, 0.04), (0.21, 0.25), (0.18, 0.46)],
         [(0.18, 0.46), (0.45, 0.38), (0.78, 0.48), (0.88, 0.7), (0.7, 0.94), (0.38, 0.99), (0.1, 0.9)],
         [(0.24, 0.04), (0.55, 0.03), (0.88, 0.02)]],
        [[(0.85, 0.02), (0.55, 0.04), (0.28, 0.05)], [(0.28, 0.05), (0.24, 0.28), (0.2, 0.48)],
         [(0.2, 0.48), (0.55, 0.4), (0.85, 0.58), (0.78, 0.86), (0.45, 1.0), (0.12, 0.88)]],
    ],
    6: [
        [[(0.72, 0.02), (0.38, 0.22), (0.14, 0.6), (0.24, 0.92), (0.55, 0.99), (0.82, 0.8), (0.76, 0.56), (0.5, 0.5),
          (0.22, 0.64), (0.16, 0.74)]],
        [[(0.6, 0.0), (0.28, 0.28), (0.12, 0.68), (0.3, 0.96), (0.64, 0.95), (0.84, 0.72), (0.62, 0.52), (0.32, 0.6),
          (0.16, 0.78)]],
    ],
    7: [
        [[(0.1, 0.05), (0.5, 0.04), (0.9, 0.03)], [(0.9, 0.03), (0.62, 0.42), (0.4, 1.0)]],
        [[(0.1, 0.06), (0.5, 0.04), (0.88, 0.04)], [(0.88, 0.04), (0.6, 0.45), (0.42, 1.0)],
         [(0.32, 0.52), (0.55, 0.5), (0.8, 0.49)]],
    ],
    8: [
        [[(0.78, 0.14), (0.48, 0.0), (0.2, 0.14), (0.3, 0.38), (0.68, 0.56), (0.84, 0.8), (0.52, 1.0), (0.18, 0.82),
          (0.3, 0.58), (0.68, 0.4), (0.8, 0.16), (0.74, 0.1)]],
        [[(0.5, 0.0), (0.22, 0.12), (0.24, 0.36), (0.5, 0.47), (0.78, 0.36), (0.78, 0.1), (0.5, 0.0)],
         [(0.5, 0.47), (0.16, 0.62), (0.18, 0.9), (0.5, 1.0), (0.84, 0.9), (0.84, 0.62), (0.5, 0.47)]],
    ],
    9: [
        [[(0.8, 0.2), (0.55, 0.01), (0.2, 0.12), (0.16, 0.36), (0.45, 0.5), (0.76, 0.34), (0.82, 0.14)],
         [(0.82, 0.12), (0.79, 0.5), (0.74, 1.0)]],
        [[(0.78, 0.12), (0.42, 0.0), (0.16, 0.22), (0.3, 0.47), (0.62, 0.42), (0.82, 0.14)],
         [(0.82, 0.12), (0.84, 0.5), (0.66, 0.86), (0.3, 0.98)]],
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Photograph:
    """The bytes of a JPEG, the digit on it, and what makes it hard."""

    digit: int
    kind: str
    jpeg: bytes


def photographs(numbers: Iterable[int] = range(50), seed: int = 0) -> list[Photograph]:
    """Of the first 50 numbers, every digit of every kind; the same for the same number and seed."""
    return [photograph(n % 10, KINDS[n // 10 % len(KINDS)], np.random.default_rng([seed, n])) for n in numbers]


def photograph(digit: int, kind: str, random: np.random.Generator) -> Photograph:
    """One digit on paper, taken by a camera under one kind of difficulty, or under all of them."""

    def has(what: str) -> bool:
        return kind in (what, "all")

    width, height = int(random.integers(600, 1000)), int(random.integers(600, 1000))
    page = (width + 200, height + 200)  # larger than what the camera sees
    ink = _written(digit, page, min(width, height), random)
    lines = _squares(page, random) if has("squares") else np.zeros(page[::-1], np.float32)
    on_table = has("turn") and random.random() < 0.7
    warp = _camera((width, height), page, turned=has("turn"), whole_page=on_table, random=random)
    ink, lines, paper = (_warped(layer, warp, (width, height)) for layer in (ink, lines, np.ones_like(ink)))

    tint = 1 - random.uniform(0, 0.08, 3) * [0.3, 0.5, 1]  # a little yellow
    line_colour = tint * random.uniform([0.6, 0.68, 0.74], [0.78, 0.84, 0.9])
    pen = np.array([[0.10, 0.10, 0.11], [0.10, 0.14, 0.42], [0.2, 0.2, 0.22]])[random.integers(3)]
    table = np.array([[0.22, 0.15, 0.10], [0.15, 0.15, 0.16], [0.35, 0.25, 0.17]])[random.integers(3)]
    grain = _soft_noise((height, width), (120, 6), random)[..., None] * 0.12 + 1
    scene = _mix(np.broadcast_to(tint, (height, width, 3)), line_colour, lines)
    scene = _mix(scene, pen, ink * random.uniform(0.8, 0.97))
    scene = _mix(table * grain, scene, paper)
    light = random.uniform(0.72, 0.95) * _light((height, width), random)
    if has("shadow"):
        light = light * _shadow((height, width), random)
    seen = np.clip(scene * light[..., None] * 255, 0, 255)

    blur = random.uniform(2.5, 5.0) if has("blur") else random.uniform(0.5, 1.2)
    noise = random.uniform(6, 12) if has("blur") else random.uniform(1.5, 4)
    quality = int(random.integers(30, 55) if has("blur") else random.integers(70, 92))
    soft = Image.fromarray(seen.astype(np.uint8)).filter(ImageFilter.GaussianBlur(blur * min(width, height) / 800))
    noisy = np.asarray(soft, np.float32) + random.normal(0, noise, (height, width, 1)) + random.normal(0, 1, seen.shape)
    file = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=quality)
    return Photograph(digit, kind, file.getvalue())


def _written(digit: int, page: tuple[int, int], view: int, random: np.random.Generator) -> Grey:
    """Ink from 0 to 1, a digit near the middle of the page."""
    tall = view * random.uniform(0.35, 0.65)
    wide = tall * random.uniform(0.5, 0.75) * (0.5 if digit == 1 else 1)
    slant = random.uniform(-0.05, 0.25)
    pen = tall * random.uniform(0.035, 0.1)
    middle = np.array(page) / 2 + random.uniform(-0.08, 0.08, 2) * view
    variants = PATHS[digit]
    sheet = Image.new("L", page, 0)
    draw = ImageDraw.Draw(sheet)
    jitter: dict[tuple[float, float], NDArray[np.float64]] = {}  # strokes that meet go on meeting
    for stroke in variants[random.integers(len(variants))]:
        moved = [np.array(point) + jitter.setdefault(point, random.normal(0, 0.02, 2)) for point in stroke]
        path = _smooth(np.array(moved)) - 0.5
        path = np.stack([path[:, 0] * wide - slant * path[:, 1] * tall, path[:, 1] * tall], axis=1) + middle
        pressure = pen / 2 * (1 + 0.15 * np.sin(np.linspace(0, random.uniform(2, 7), len(path)) + random.uniform(0, 6)))
        for (x, y), radius in zip(path.tolist(), pressure.tolist(), strict=True):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    uneven = 1 - 0.12 * np.abs(_soft_noise(page[::-1], (14, 14), random))
    return np.asarray(sheet, np.float32) / 255 * uneven


def _smooth(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """A Catmull-Rom curve through all points, ``[M, 2]``."""
    ends = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    t = np.linspace(0, 1, 60)[:, None]
    parts = []
    for a, b, c, d in zip(ends, ends[1:], ends[2:], ends[3:], strict=False):
        parts.append(0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3))
    return np.concatenate(parts)


def _squares(page: tuple[int, int], random: np.random.Generator) -> Grey:
    """Printed lines, 1 where one is."""
    apart = random.uniform(40, 75)
    sheet = Image.new("L", page, 0)
    draw = ImageDraw.Draw(sheet)
    thick = int(random.integers(2, 4))
    for place in np.arange(random.uniform(0, apart), max(page), apart).tolist():
        draw.line((place, 0, place, page[1]), fill=255, width=thick)
        draw.line((0, place, page[0], place), fill=255, width=thick)
    return np.asarray(sheet, np.float32) / 255


def _camera(
    view: tuple[int, int], page: tuple[int, int], turned: bool, whole_page: bool, random: np.random.Generator
) -> list[float]:
    """The homography from a pixel of the photograph to the page, as Pillow takes it."""
    width, height = view
    angle = np.deg2rad(random.uniform(-15, 15) if turned else random.uniform(-3, 3))
    scale = random.uniform(1.2, 1.4) if whole_page else random.uniform(0.9, 1.0)  # how much of the page is seen
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [width / 2, height / 2]
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    tilt = random.uniform(-0.06, 0.06, (4, 2)) * [width, height] if turned else np.zeros((4, 2))
    on_page = (corners * scale + tilt) @ rotation.T + np.array(page) / 2
    rows, values = [], []
    for (x, y), (u, v) in zip(corners + np.array([width, height]) / 2, on_page, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return [float(value) for value in np.linalg.solve(np.array(rows), np.array(values))]


def _warped(layer: Grey, warp: list[float], view: tuple[int, int]) -> Grey:
    flat = Image.fromarray((layer * 255).astype(np.uint8))
    seen = flat.transform(view, Image.Transform.PERSPECTIVE, warp, Image.Resampling.BICUBIC)
    return np.asarray(seen, np.float32) / 255


def _light(shape: tuple[int, int], random: np.random.Generator) -> Grey:
    """A lamp at one side and a lens that is darker in its corners."""
    y, x = (np.linspace(-1, 1, side, dtype=np.float32) for side in shape)
    towards = random.uniform(0, 2 * np.pi)
    slope = random.uniform(0, 0.15) * (np.cos(towards) * x[None] + np.sin(towards) * y[:, None])
    return 1 - random.uniform(0, 0.1) * (x[None] ** 2 + y[:, None] ** 2) / 2 + slope - 0.1


def _shadow(shape: tuple[int, int], random: np.random.Generator) -> Grey:
    """Somebody's hand and arm, or the edge of a book: 20 to 45 % darker, with a soft edge, across the middle."""
    height, width = shape
    mask = Image.new("L", (width, height), 0)
    draw = ImageDraw.Draw(mask)
    x, y = random.uniform(0.3, 0.7) * width, random.uniform(0.3, 0.7) * height
    angle, far = random.uniform(0, 2 * np.pi), 2 * max(shape)
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    if random.random() < 0.5:  # a half plane
        edge = [(x, y) + far * across, (x, y) - far * across, (x, y) - far * across + far * along]
        draw.polygon([tuple(p) for p in (*edge, (x, y) + far * across + far * along)], fill=255)
    else:
        half = random.uniform(0.12, 0.25) * min(shape)
        tip = np.array([x, y])
        draw.polygon([tuple(p) for p in (tip - half * across, tip + half * across,
                                         tip + 1.6 * half * across + far * along,
                                         tip - 1.6 * half * across + far * along)], fill=255)  # fmt: skip
        draw.ellipse((x - half, y - half, x + half, y + half), fill=255)
    soft = mask.filter(ImageFilter.GaussianBlur(random.uniform(0.008, 0.06) * min(shape)))
    return 1 - random.uniform(0.2, 0.45) * np.asarray(soft, np.float32) / 255


def _soft_noise(shape: tuple[int, int], grain: tuple[int, int], random: np.random.Generator) -> Grey:
    """Smooth random values about 0, of standard deviation near 0.5; ``grain`` is the size of a spot."""
    small = random.normal(0, 0.6, (shape[0] // grain[1] + 2, shape[1] // grain[0] + 2)).astype(np.float32)
    return np.asarray(Image.fromarray(small).resize(shape[::-1], Image.Resampling.BICUBIC))


def _mix(below: NDArray[np.floating], above: NDArray[np.floating], share: Grey) -> NDArray[np.floating]:
    return below + (above - below) * share[..., None]
