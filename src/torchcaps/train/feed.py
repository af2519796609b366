"""From a recipe and a data source to batches for training and examples held out; the test split is never touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor

from torchcaps.data import Source, TrainSplit, ValidationSplit, load, train_and_validation
from torchcaps.data.augment import Augmentations, build
from torchcaps.data.loader import Loader, evaluation_batches
from torchcaps.data.multi_loader import MultiLoader
from torchcaps.data.multimnist import MultiMNIST
from torchcaps.data.stepping import StepLoader
from torchcaps.data.window import to_unit_float
from torchcaps.errors import DataError
from torchcaps.train.distributed import World
from torchcaps.train.recipe import Recipe, RecipeError

__all__ = ["Example", "Feed", "divide_source", "load_source", "steps_of", "steps_per_epoch"]


VALIDATION_SEED = 0


class Example(NamedTuple):
    """A batch as the objective takes it; ``targets`` are the pictures to draw."""

    images: Tensor
    labels: Tensor
    targets: Tensor


def load_source(recipe: Recipe, data_dir: Path | str | None) -> Source:
    """The data set that the recipe names; a sample in place of it is refused."""
    size, channels = recipe.data.size or None, recipe.data.channels or None
    source = load(recipe.data.source, data_dir=data_dir, size=size, channels=channels)
    if source.is_sample and recipe.data.source != source.name:
        raise DataError(
            f"{recipe.data.source} is not on this machine and could not be fetched, and a run named after it should "
            f"not be trained on a sample. Get it with: torchcaps data fetch {recipe.data.source}; or say where it "
            f"lies with --data-dir; or train on the embedded digits with data.source={source.name}"
        )
    return source


@dataclass(frozen=True)
class Feed:
    """Training batches by step, and held-out batches in order."""

    loader: StepLoader[object]
    image_shape: tuple[int, int, int]
    classes: tuple[str, ...]
    validation: ValidationSplit | None
    augment: Augmentations
    validation_pairs: MultiMNIST | None
    validation_count: int

    @classmethod
    def build(cls, recipe: Recipe, source: Source, world: World, channels_last: bool) -> Feed:
        train, validation = _divide(recipe, source)
        batch_size, seed, device = recipe.training.batch_size, recipe.seed, world.device
        augment = build(recipe.data.augment)
        loader: Loader | MultiLoader
        pairs: MultiMNIST | None = None
        if recipe.data.task == "multimnist":
            variant = recipe.data.variant
            multi = MultiMNIST(train, variant, seed, device)  # type: ignore[arg-type]
            loader = MultiLoader(
                multi, batch_size, seed, drop_last=recipe.data.drop_last, rank=world.rank, world_size=world.size
            )
            shape = (train.images.shape[1], *multi.size)
            if validation is not None:
                pairs = MultiMNIST(validation, variant, seed, device)  # type: ignore[arg-type]
        else:
            loader = Loader(
                train,
                batch_size,
                device,
                augment,
                seed,
                drop_last=recipe.data.drop_last,
                rank=world.rank,
                world_size=world.size,
                channels_last=channels_last,
                queue=recipe.data.queue,
                copies=recipe.data.copies,
            )
            # Tried on one picture: what an augmentation cannot do is said now, before there is a run folder.
            first = train.images[:1]
            tried = augment(first, torch.zeros(1, dtype=torch.int64, device=first.device), seed)
            shape = cast("tuple[int, int, int]", tuple(tried.shape[1:]))
            if validation is not None and recipe.data.validation_augmented:
                validation = _augmented_once(validation, augment)
                augment = build(())
        count = 0 if validation is None else len(validation)
        if pairs is not None:
            count = min(recipe.data.validation_pairs, len(pairs))
        step_loader = cast("StepLoader[object]", loader)
        return cls(step_loader, shape, source.classes, validation, augment, pairs, count)

    def batch(self, step: Tensor) -> Example:
        """The training batch of a step, which lies on the device: device work only."""
        return _example(self.loader.step_batch(step))

    def held_out(self, batch_size: int) -> Iterator[Example]:
        """Every held-out example once, in order, nothing random."""
        device = self.loader.device
        if self.validation_pairs is not None:
            # Evenly spaced: a thousand pairs that follow each other share one digit.
            chosen = torch.arange(self.validation_count, device=device) * len(self.validation_pairs)
            for indices in (chosen // self.validation_count).split(batch_size):
                pairs = self.validation_pairs.pairs(indices)
                yield Example(to_unit_float(pairs.images), pairs.labels, to_unit_float(pairs.singles))
        elif self.validation is not None:
            for batch in evaluation_batches(self.validation, batch_size, device, self.augment):
                yield _example(batch)


def _example(batch: object) -> Example:
    images, labels = batch.images, batch.labels  # type: ignore[attr-defined]
    return Example(images, labels, getattr(batch, "singles", images))


def _augmented_once(split: ValidationSplit, augment: Augmentations) -> ValidationSplit:
    """The split as the augmentation changes it, by a seed of its own: the same pictures in every run."""
    images = augment(split.images, torch.arange(len(split)), VALIDATION_SEED)
    if images.dtype != torch.uint8:
        raise RecipeError(
            "data.validation_augmented needs augmentations that keep whole grey levels (shift, crop, place, flip, "
            "cutout, affine, elastic, deform), but data.augment has one that computes with brightness; leave it out"
        )
    return replace(split, images=images)


def divide_source(recipe: Recipe, source: Source) -> tuple[TrainSplit, ValidationSplit]:
    """What is learned from and what is held out, as the recipe says."""
    section = recipe.data
    return train_and_validation(
        source, section.validation, seed=0, fold=section.fold, consecutive=section.validation_consecutive
    )


def _divide(recipe: Recipe, source: Source) -> tuple[TrainSplit, ValidationSplit | None]:
    if not len(source.train):
        raise DataError(f"{source.name} has no training pictures")
    if recipe.data.validation == 0:
        return source.train, None
    train, validation = divide_source(recipe, source)
    if recipe.training.batch_size > len(train):
        raise RecipeError(
            f"training.batch_size is {recipe.training.batch_size}, but only {len(train)} pictures are left to train on "
            f"after {len(validation)} were held out; choose a smaller batch"
        )
    return train, validation


def steps_of(recipe: Recipe, feed: Feed) -> int:
    """The length of the run in steps."""
    if recipe.training.steps:
        return recipe.training.steps
    return max(1, round(recipe.training.epochs * feed.loader.epoch_length / feed.loader.batch_size))


def steps_per_epoch(feed: Feed) -> int:
    """Whole steps that an epoch takes, at least one."""
    return max(1, round(feed.loader.epoch_length / feed.loader.batch_size))
