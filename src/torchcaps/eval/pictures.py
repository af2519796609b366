"""People's own pictures in the form that a model takes, and what the model says about each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

import torch
from torch import Tensor

from torchcaps.data.augment import Augmentations
from torchcaps.data.catalog import CATALOG
from torchcaps.data.readers.pictures import PICTURE_KINDS, PICTURE_SUFFIXES, read_each, skipped_lines
from torchcaps.data.readers.written_digit import DIGIT_SIDE, Invert
from torchcaps.errors import DataError, TorchcapsError
from torchcaps.eval.metrics import PRESENCE_THRESHOLD
from torchcaps.eval.picture_form import PictureForm
from torchcaps.eval.recipe_facts import OWN_DATA, recipe_facts
from torchcaps.eval.runs import Run
from torchcaps.models import CapsuleModel, Model

__all__ = ["ReadPictures", "class_names", "named_classes", "picture_form", "read_pictures", "things_in_a_picture"]

DIGITS = tuple("0123456789")
LARGEST_DIGIT_SIDE = 48  # a canvas larger than that holds more than one digit of MNIST in its middle


@dataclass(frozen=True)
class ReadPictures:
    """Pictures ``[B, C, H, W]`` ready for the model, where each came from, and whether it was inverted.

    ``empty`` are those on which a model of digits finds no ink. ``skipped`` has a line for each unreadable file.
    """

    images: Tensor
    paths: tuple[Path, ...]
    inverted: tuple[bool, ...]
    empty: tuple[bool, ...]
    skipped: tuple[str, ...]


def read_pictures(paths: Sequence[Path], run: Run, model: Model, invert: str = "auto") -> ReadPictures:
    """Read pictures and folders of them, each by :meth:`torchcaps.eval.picture_form.PictureForm.seen`.

    Args:
        invert: ``"yes"``, ``"no"``, or ``"auto"``: ink on paper is inverted when the model learned from a published set
            that is white on black. A model of one's own pictures inverts nothing.
    """
    if invert not in get_args(Invert):
        raise TorchcapsError(f"--invert takes auto, yes or no, not {invert!r}")
    form = picture_form(run, model)
    form.check()
    files = list(_files(paths))
    choice = cast("Invert", invert)
    seen, troubles = read_each(dict(enumerate(files)), lambda picture: form.seen(form.flat(picture), choice))
    skipped = skipped_lines(len(files), troubles)
    pictures = list(seen.values())
    return ReadPictures(
        form.prepared(torch.stack([picture.pixels for picture in pictures])),
        tuple(files[n] for n in seen),
        tuple(picture.inverted for picture in pictures),
        tuple(picture.empty for picture in pictures),
        skipped,
    )


def picture_form(run: Run, model: Model) -> PictureForm:
    """How a model is shown pictures of one's own, from what its run knows of the data it learned from."""
    facts = recipe_facts(run)
    C, H, W = model.image_shape
    source = None if facts.data is None else facts.data.source
    reads_digits = H == W and DIGIT_SIDE <= H <= LARGEST_DIGIT_SIDE and class_names(run, model) == DIGITS
    if source is None:  # nobody knows what it learned from
        white_on_black = C == 1 and reads_digits
    else:
        white_on_black = C == 1 and source in CATALOG and CATALOG[source].white_on_black
    digits = white_on_black and reads_digits
    read_as = (H, W)
    if source is not None and source.startswith(OWN_DATA):
        sides = (facts.size, facts.size) if isinstance(facts.size, int) else facts.size
        read_as = sides or run.read_as or read_as
    if not _becomes(model.image_shape, facts.augment, read_as):
        read_as = (H, W)
    augment = facts.augment if _becomes(model.image_shape, facts.augment, read_as) else None
    return PictureForm((C, H, W), read_as, digits, white_on_black, augment)


def _becomes(image_shape: Sequence[int], augment: Augmentations | None, read_as: tuple[int, int]) -> bool:
    """Whether pictures of such a size have the model's shape after the recipe's fixed steps."""
    images = torch.zeros(1, image_shape[0], *read_as, dtype=torch.uint8)
    try:
        return tuple((images if augment is None else augment.placed(images)).shape[1:]) == tuple(image_shape)
    except DataError:  # a step that such pictures do not fit
        return False


def class_names(run: Run, model: Model) -> tuple[str, ...]:
    """Names from the run, else the numbers of the classes."""
    names = run.class_names
    return names if names and len(names) == model.num_classes else tuple(map(str, range(model.num_classes)))


def things_in_a_picture(run: Run) -> int:
    """How many classes a model names: two when it learned from pairs, else one."""
    choice = recipe_facts(run).data
    return 1 if choice is None or choice.variant is None else 2


def named_classes(run: Run, model: Model, scores: Tensor, empty: Sequence[bool]) -> list[list[int]]:
    """The classes that the model names in each picture of scores ``[B, J]``, the surest first.

    As many as :func:`things_in_a_picture`, but none on an empty picture, and none where no capsule is longer than
    ``PRESENCE_THRESHOLD``: no class is there. The probabilities of another network sum to 1 whatever it is shown, so it
    always names one. When it learned from pictures that show any number of classes: every one above the threshold.
    """
    ranked = scores.argsort(dim=1, descending=True, stable=True).tolist()
    present = (scores > PRESENCE_THRESHOLD).sum(dim=1).tolist()
    if not run.any_number_of_classes:
        always, things = not isinstance(model, CapsuleModel), things_in_a_picture(run)
        present = [
            things if (always or count) and not nothing else 0 for count, nothing in zip(present, empty, strict=True)
        ]
    return [row[:count] for row, count in zip(ranked, present, strict=True)]


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
