"""People's own pictures in the form that a model takes, and what the model says about each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from torchcaps.data.readers.pictures import PICTURE_KINDS, PICTURE_SUFFIXES, decode_pictures
from torchcaps.data.window import to_unit_float
from torchcaps.errors import TorchcapsError
from torchcaps.eval.examples import fitting
from torchcaps.eval.metrics import PRESENCE_THRESHOLD
from torchcaps.eval.recipe_facts import OWN_DATA, recipe_facts
from torchcaps.eval.runs import Run
from torchcaps.models import Model

__all__ = ["ReadPictures", "class_names", "named_classes", "read_pictures", "things_in_a_picture"]

INVERT_CHOICES = ("auto", "yes", "no")


@dataclass(frozen=True)
class ReadPictures:
    """Pictures ``[B, C, H, W]`` ready for the model, where each came from, and whether it was inverted.

    ``skipped`` has a line for each file that could not be read.
    """

    images: Tensor
    paths: tuple[Path, ...]
    inverted: tuple[bool, ...]
    skipped: tuple[str, ...]


def read_pictures(paths: Sequence[Path], run: Run, model: Model, invert: str = "auto") -> ReadPictures:
    """Read pictures and folders of them; size and channels become those of the model.

    The rule is that of :func:`torchcaps.data.readers.pictures.decode_pictures`: the picture is scaled until it just
    fits inside, and its border is repeated outwards.

    Args:
        invert: ``"yes"``, ``"no"``, or ``"auto"``: a grey picture with a bright border is inverted when the model
            learned from published digits, which are white on black. A model of one's own pictures inverts nothing.
    """
    if invert not in INVERT_CHOICES:
        raise TorchcapsError(f"--invert takes auto, yes or no, not {invert!r}")
    channels, height, width = model.image_shape
    if channels not in (1, 3):
        raise TorchcapsError(f"the model takes {channels} channels, but picture files have 1 (grey) or 3 (colour)")
    files = list(_files(paths))
    decoded = decode_pictures(files, size=(height, width), channels=channels)
    images = decoded.images
    turned = torch.zeros(len(images), dtype=torch.bool)
    if invert == "yes":
        turned[:] = True
    elif invert == "auto" and channels == 1 and _learned_white_on_black(run):
        turned = _border_mean(images) > 127.5
    images = torch.where(turned.view(-1, 1, 1, 1), 255 - images, images)
    augment = fitting(recipe_facts(run).augment, images, model)
    prepared = to_unit_float(images if augment is None else augment.evaluate(images))
    kept = tuple(files[position] for position in decoded.kept)
    return ReadPictures(prepared, kept, tuple(turned.tolist()), decoded.skipped)


def class_names(run: Run, model: Model) -> tuple[str, ...]:
    """Names from the run, else the numbers of the classes."""
    names = run.class_names
    return names if names and len(names) == model.num_classes else tuple(map(str, range(model.num_classes)))


def things_in_a_picture(run: Run) -> int:
    """How many classes a model names: two when it learned from pairs, else one."""
    choice = recipe_facts(run).data
    return 1 if choice is None or choice.variant is None else 2


def named_classes(run: Run, scores: Tensor) -> list[list[int]]:
    """The classes that the model names in each picture of scores ``[B, J]``, the surest first.

    As many as :func:`things_in_a_picture`; every one above 0.5, maybe none, when it learned from pictures that show any
    number of classes.
    """
    ranked = scores.argsort(dim=1, descending=True, stable=True).tolist()
    if run.any_number_of_classes:
        counts = (scores > PRESENCE_THRESHOLD).sum(dim=1).tolist()
    else:
        counts = [things_in_a_picture(run)] * len(ranked)
    return [row[:count] for row, count in zip(ranked, counts, strict=True)]


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in (path.expanduser() for path in paths):
        if path.is_dir():
            try:
                inside = sorted(
                    Path(folder) / name
                    for folder, _, names in os.walk(path)
                    for name in names
                    if Path(name).suffix.lower() in PICTURE_SUFFIXES and not name.startswith(".")
                )
            except OSError as error:
                raise TorchcapsError(f"{path} cannot be listed: {error.strerror or error}") from error
            if not inside:
                raise TorchcapsError(f"{path} holds no pictures; {PICTURE_KINDS} files are read")
            files += inside
        elif path.exists():
            files.append(path)
        else:
            raise TorchcapsError(f"there is no picture or folder {path}")
    return files


def _learned_white_on_black(run: Run) -> bool:
    choice = recipe_facts(run).data
    return choice is None or not choice.source.startswith(OWN_DATA)


def _border_mean(images: Tensor) -> Tensor:
    """Mean of the outermost pixels of each picture, ``[B]``."""
    edge = torch.ones(images.shape[-2:], dtype=torch.bool)
    edge[1:-1, 1:-1] = False
    return images[..., edge].float().mean(dim=(1, 2))
