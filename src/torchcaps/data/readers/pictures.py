"""Decode picture files of any size and kind into one tensor, by one stated rule.

The rule, in this order: turn as the camera's EXIF note says; first frame of several; 16-bit grey to 8 bits by its
high byte; transparent parts over white; grey or colour as asked; scaled so that the picture just fits inside the
size, shape kept, bilinear with anti-aliasing; the rest filled by repeating the picture's border.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from torchcaps.data.contents import MAX_FILE_BYTES
from torchcaps.data.optional import pillow_image
from torchcaps.errors import DataError
from torchcaps.ranges import MOST_SIDE

__all__ = [
    "PICTURE_KINDS",
    "PICTURE_SUFFIXES",
    "Decoded",
    "decode_pictures",
    "fit_inside",
    "flat_picture",
    "read_each",
    "skipped_lines",
]

T = TypeVar("T")

PICTURE_KINDS = "PNG, JPEG, WebP, GIF, TIFF and BMP"
PICTURE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".bmp"})
PILLOW_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP")
MAX_PICTURE_BYTES = 256 * 2**20
LARGEST_KEPT_SIDE = 128  # pictures that all share a size keep it up to here; see docs/data.md
DEFAULT_SIDE = 64
STRIP = 256  # rows


@dataclass(frozen=True)
class Decoded:
    """Pictures uint8 ``[N, C, H, W]``, the positions of those that were readable, and a line for each other one."""

    images: torch.Tensor
    kept: tuple[int, ...]
    skipped: tuple[str, ...]


def decode_pictures(
    paths: Sequence[Path],
    *,
    size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    strict: bool = False,
) -> Decoded:
    """Read pictures into one tensor.

    Args:
        size: side, or (height, width). Left out: the size that all pictures share if no side is above 128,
            else 64×64.
        channels: 1 for grey, 3 for colour. Left out: 1 when every picture is grey.
        strict: an unreadable picture is an error instead of an entry in ``skipped``.
    """
    if channels not in (None, 1, 3):
        raise DataError(f"channels must be 1 (grey) or 3 (colour), got {channels}")
    files = dict(enumerate(paths))
    heads, troubles = read_each(files, _read_head)
    pictures: dict[int, NDArray[np.uint8]] = {}
    form: tuple[int, int, bool] | None = None
    while form != (wanted := _form(size, channels, heads.values())):  # again where an unreadable one had decided it
        form = wanted
        pictures, more = read_each({position: files[position] for position in heads}, partial(_decode, *form))
        troubles |= more
        heads = {position: heads[position] for position in pictures}
    if strict and troubles:
        lines = "\n  ".join(troubles[position] for position in sorted(troubles))
        raise DataError(f"{len(troubles)} of {len(paths)} pictures cannot be read:\n  {lines}")
    skipped = skipped_lines(len(paths), troubles)
    return Decoded(torch.from_numpy(np.stack(list(pictures.values()))), tuple(pictures), skipped)


def read_each(paths: Mapping[int, Path], read: Callable[[Any], T]) -> tuple[dict[int, T], dict[int, str]]:
    """What ``read`` makes of each open picture of Pillow's, and a line for each that cannot be read."""
    results: dict[int, T] = {}
    troubles: dict[int, str] = {}
    for position, path in paths.items():
        try:
            with _opened(path) as picture:
                results[position] = read(picture)
        except _UnreadableError as error:
            troubles[position] = f"{path}: {error}"
    return results, troubles


def skipped_lines(count: int, troubles: Mapping[int, str]) -> tuple[str, ...]:
    """The lines in order, or an error when none of ``count`` pictures could be read."""
    skipped = tuple(troubles[position] for position in sorted(troubles))
    if len(skipped) == count:
        detail = "\n  " + "\n  ".join(skipped[:5]) if skipped else ""
        raise DataError(f"none of {count} pictures could be read{detail}")
    return skipped


class _UnreadableError(Exception):
    """Why one picture cannot be used."""


@dataclass(frozen=True)
class _Head:
    height: int
    width: int
    grey: bool


def _read_head(picture: Any) -> _Head:
    width, height = picture.size
    if picture.getexif().get(0x0112, 1) in (5, 6, 7, 8):  # EXIF orientation: lies on its side
        width, height = height, width
    return _Head(height, width, _is_grey(picture))


def _is_grey(picture: Any) -> bool:
    if picture.mode in ("P", "PA"):  # numbers of colours, which may all be grey
        colours = np.reshape(picture.getpalette(), (-1, 3))
        return bool((colours == colours[:, :1]).all())
    return picture.mode in ("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "F")


def _decode(height: int, width: int, grey: bool, picture: Any) -> NDArray[np.uint8]:
    return fit_inside(flat_picture(picture, grey), height, width)


def flat_picture(picture: Any, grey: bool) -> Any:
    """An open picture of Pillow's upright, in 8 bits, over white where it is transparent, grey or in colour.

    What takes several bytes a pixel on the way is done in strips of :data:`STRIP` rows, for large pictures.
    """
    upright = _eight_bit(_turned(picture))
    mode = "L" if grey else "RGB"
    if "A" not in upright.getbands() and "transparency" not in upright.info:
        return upright if upright.mode == mode else upright.convert(mode)
    flat = pillow_image().new(mode, upright.size)
    for top in range(0, upright.height, STRIP):
        transparent = upright.crop((0, top, upright.width, min(top + STRIP, upright.height))).convert("RGBA")
        strip = pillow_image().new("RGBA", transparent.size, "white")
        strip.alpha_composite(transparent)
        flat.paste(strip.convert(mode), (0, top))
    return flat


def fit_inside(picture: Any, height: int, width: int) -> NDArray[np.uint8]:
    """Scale to fit inside, centre, repeat the border outwards: ``[C, height, width]``."""
    scale = min(height / picture.height, width / picture.width)
    inner = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
    if picture.size != inner:
        picture = picture.resize(inner, pillow_image().Resampling.BILINEAR)
    pixels = np.asarray(picture)
    pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    missing_rows, missing_columns = height - pixels.shape[1], width - pixels.shape[2]
    rows = (missing_rows // 2, missing_rows - missing_rows // 2)
    columns = (missing_columns // 2, missing_columns - missing_columns // 2)
    return np.pad(pixels, ((0, 0), rows, columns), mode="edge")


def _turned(picture: Any) -> Any:
    from PIL import ImageOps  # here only after pillow_image() found Pillow

    ImageOps.exif_transpose(picture, in_place=True)  # no copy where nothing is to be turned
    return picture


def _eight_bit(picture: Any) -> Any:
    """Grey pictures of more than 8 bits, which Pillow would clip instead of scale."""
    if not (picture.mode.startswith("I") or picture.mode == "F"):
        return picture
    values = np.asarray(picture)
    scale, transparent = 1.0, None
    if picture.mode == "F":
        scale = 255.0 if values.size and np.nanmax(values) <= 1 else 1.0
    elif picture.mode != "I" or values.max(initial=0) > 255:  # of 32-bit numbers nobody says how far they reach
        scale, transparent = 1 / 256, picture.info.get("transparency")
    grey = np.empty(values.shape, np.uint8)
    for top in range(0, len(values), STRIP):
        strip = values[top : top + STRIP].astype(np.float64)
        if transparent is not None:
            strip[strip == transparent] = 65535  # white, as all transparent parts
        grey[top : top + STRIP] = np.nan_to_num(strip * scale).clip(0, 255).astype(np.uint8)
    return pillow_image().fromarray(grey)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a picture; whatever goes wrong with it, now or while it is decoded, is :class:`_UnreadableError`."""
    image = pillow_image()
    try:
        size = path.stat().st_size
        if size == 0:
            raise _UnreadableError("the file is empty (0 bytes)")
        if size > MAX_PICTURE_BYTES:
            raise _UnreadableError(f"{size:,} bytes are more than the limit of {MAX_PICTURE_BYTES:,}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on odd metadata are of no use to the caller
            warnings.simplefilter("error", image.DecompressionBombWarning)
            with image.open(path, formats=PILLOW_FORMATS) as picture:
                yield picture
    except _UnreadableError:
        raise
    except FileNotFoundError as error:
        raise _UnreadableError("there is no such file") from error
    except image.UnidentifiedImageError as error:
        raise _UnreadableError(f"not a picture of a kind that is read ({PICTURE_KINDS}), or damaged") from error
    except Exception as error:  # decoders raise all kinds of exceptions on damaged bytes
        reason = str(error).replace(str(path), "the file") or type(error).__name__
        raise _UnreadableError(f"cannot be decoded ({reason})") from error


def _form(size: int | tuple[int, int] | None, channels: int | None, heads: Collection[_Head]) -> tuple[int, int, bool]:
    """Height, width and whether grey: what every picture is brought to."""
    height, width = _target_size(size, heads)
    grey = channels == 1 or (channels is None and all(head.grey for head in heads))
    depth = 1 if grey else 3
    if len(heads) * depth * height * width > MAX_FILE_BYTES:
        raise DataError(
            f"{len(heads)} pictures of {depth}×{height}×{width} would take more than {MAX_FILE_BYTES:,} bytes; "
            "choose a smaller size"
        )
    return height, width, grey


def _target_size(size: int | tuple[int, int] | None, heads: Iterable[_Head]) -> tuple[int, int]:
    if size is None:
        sizes = {(head.height, head.width) for head in heads}
        if len(sizes) == 1 and max(only := next(iter(sizes))) <= LARGEST_KEPT_SIDE:
            return only
        return DEFAULT_SIDE, DEFAULT_SIDE
    height, width = (size, size) if isinstance(size, int) else size
    if not (0 < height <= MOST_SIDE and 0 < width <= MOST_SIDE):
        raise DataError(f"the size must be 1 to {MOST_SIDE} pixels a side, got {height}×{width}")
    return height, width
