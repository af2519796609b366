"""Which examples to look at: named by the user, else those of the run's recipe, else the embedded digits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import torch
from torch import Tensor

from torchcaps import data
from torchcaps.data.augment import Augmentations
from torchcaps.data.multimnist import MultiMNIST
from torchcaps.data.source import Source, Split
from torchcaps.data.window import to_unit_float
from torchcaps.errors import DataError, TorchcapsError
from torchcaps.eval import metrics
from torchcaps.eval.class_pairing import pair_classes
from torchcaps.eval.evaluate import (
    BATCH_SIZE,
    EvaluationResult,
    Watch,
    check_size,
    evaluate,
    evaluate_pairs,
    spread_pairs,
)
from torchcaps.eval.recipe_facts import DataChoice, RecipeFacts, parse_data_name, recipe_facts
from torchcaps.eval.runs import Run
from torchcaps.models import Model

__all__ = ["Examples", "check_fit", "choose_examples", "fitting"]

SAMPLE = "mnist-sample"
DEFAULT_PAIRS = 10_000
USUAL_VALIDATION = 0.1
BATCH = {"cuda": 2000}


@dataclass(frozen=True)
class Examples:
    """Examples of one split, or pairs made of one.

    Attributes:
        name, split_name, classes: what it is, for people. remarks: what they should know before they believe a number.
        split: the pictures; for pairs, the digits they are made of.
        pairs, pair_indices: set for MultiMNIST only.
        augment: the recipe's pipeline, whose fixed parts (crop, standardisation) belong to evaluation too.
    """

    name: str
    split_name: str
    classes: tuple[str, ...]
    split: Split
    remarks: tuple[str, ...] = ()
    pairs: MultiMNIST | None = None
    pair_indices: Tensor | None = None
    augment: Augmentations | None = None

    def __len__(self) -> int:
        return len(self.split) if self.pair_indices is None else len(self.pair_indices)

    @property
    def any_number_of_classes(self) -> bool:
        """Whether a picture may show several classes, or none."""
        return self.pairs is None and self.split.labels.dtype == torch.bool

    def evaluate(self, model: Model, watch: Watch | None = None) -> EvaluationResult:
        """Measure a model on all of them, on a GPU where there is one; the model returns to where it was.

        ``watch(done, total)`` is called after each batch of pairs, of which there may be millions.
        """
        _check_classes(model, self)
        home = next(model.parameters()).device
        try:
            device = torch.device("cuda") if torch.cuda.is_available() else home
            model.to(device)
            if self.pairs is not None and self.pair_indices is not None:
                made = self.pairs  # and are made again where they are used
                pairs = MultiMNIST(self.split, made.variant, made.seed, device, made.pairs_per_digit)
                return evaluate_pairs(model, pairs, self.pair_indices, BATCH.get(device.type, BATCH_SIZE), watch)
            return evaluate(model, self.split, augment=self.augment)
        finally:
            model.to(home)

    def images(self, positions: Tensor) -> Tensor:
        """What the model sees, float ``[n, C, H, W]``."""
        if self.pairs is not None and self.pair_indices is not None:
            return to_unit_float(self.pairs.pairs(self.pair_indices[positions]).images)
        images = self.split.images[positions]
        return to_unit_float(images if self.augment is None else self.augment.evaluate(images))

    def singles(self, positions: Tensor) -> Tensor:
        """Each digit of a pair alone at its place, float ``[n, 2, C, H, W]``."""
        if self.pairs is None or self.pair_indices is None:
            raise ValueError("only pairs have digits that stand alone; these examples are not pairs")
        return to_unit_float(self.pairs.pairs(self.pair_indices[positions]).singles)

    def labels(self, positions: Tensor) -> Tensor:
        if self.pairs is not None and self.pair_indices is not None:
            return self.pairs.labels(self.pair_indices[positions])
        return self.split.labels[positions]

    def file(self, position: int) -> str | None:
        """The file that an example was read from, the two of a pair joined by `` + ``; none where nobody knows."""
        files = self.split.files
        if files is None:
            return None
        if self.pairs is None or self.pair_indices is None:
            return files[position]
        return " + ".join(files[part] for part in self.pairs.pictures(self.pair_indices[[position]])[0].tolist())

    def of_class(self, class_number: int) -> Tensor:
        """Positions of the examples that show a class, in order."""
        labels = self.labels(torch.arange(len(self)))
        shown = metrics.true_classes(labels, len(self.classes))[:, class_number]
        return shown.nonzero()[:, 0]

    def one_of_each_class(self, most: int = 12) -> Tensor:
        """Positions of the first example of each class, each once, at most so many."""
        return self._in_turn(most, rounds=1)

    def classes_in_turn(self, most: int) -> Tensor:
        """Positions of the first example of each class, then the second of each, and so on, each once, at most so many.

        Fewer come back only where there are no more examples.
        """
        return self._in_turn(most, rounds=most)

    def _in_turn(self, most: int, rounds: int) -> Tensor:
        by_class = [self.of_class(j)[:rounds].tolist() for j in range(len(self.classes))]
        turns = (position for turn in zip_longest(*by_class) for position in turn if position is not None)
        return torch.tensor(list(dict.fromkeys(turns))[:most])


def choose_examples(
    run: Run,
    model: Model,
    name: str | None = None,
    split_name: str = "test",
    data_dir: Path | None = None,
    pairs: int = DEFAULT_PAIRS,
) -> Examples:
    """The examples that a command works on, their labels in the order of the model's classes where both have names.

    Args:
        name: see :func:`torchcaps.eval.recipe_facts.parse_data_name`; left out, what the recipe says.
        split_name: ``"test"``, ``"validation"`` or ``"train"``.
        pairs: how many pairs of MultiMNIST, evenly spaced among all there are.
    """
    facts = recipe_facts(run)
    remarks = []
    choice = facts.data if name is None else parse_data_name(name)
    if choice is None:
        choice = DataChoice(SAMPLE)
        remarks.append("no recipe says what the model was trained on; the embedded digits of MNIST are used")
    if choice != facts.data:  # how to read pictures belongs to the data, how to prepare them to the model
        _, height, width = model.image_shape
        facts = RecipeFacts(size=(height, width), channels=_channels(model), augment=facts.augment)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", data.SampleDataWarning)
        try:
            source = _load(choice.source, facts, data_dir)
        except DataError as error:
            if name is not None or ":" not in choice.source:
                raise
            raise DataError(
                f"{error}. The run's recipe names {choice.source}; if the data has moved, name it with --data"
            ) from error
    split = _split(source, split_name, facts)
    classes, split = pair_classes(run, model.num_classes, source.name, source.classes, split)
    if len(classes) > source.num_classes:
        remarks.append(f"{source.name} has pictures of {source.num_classes} of the model's {len(classes)} classes")
    remarks += [str(warning.message).split(". ")[0] for warning in caught]
    if source.is_sample and not caught:
        remarks.append(f"{source.name} is a small sample; its error does not stand beside published ones")
    if split_name == "validation" and source.validation is None and not facts.validation:
        remarks.append("no recipe says that these examples were held out: the model may have been trained on them")
    if choice.variant is None:
        augment = fitting(facts.augment, split.images, model)
        return Examples(str(choice), split_name, classes, split, tuple(remarks), augment=augment)
    made = MultiMNIST(split, choice.variant)
    indices = spread_pairs(made, pairs)
    if len(indices) < len(made):
        remarks.append(f"{len(indices):,} of {len(made):,} pairs, evenly spaced")
    return Examples(str(choice), split_name, classes, split, tuple(remarks), made, indices)


def _channels(model: Model) -> int | None:
    return model.image_shape[0] if model.image_shape[0] in (1, 3) else None


def fitting(augment: Augmentations | None, images: Tensor, model: Model) -> Augmentations | None:
    """The pipeline if its fixed parts (crop, standardisation) turn such pictures into those the model takes."""
    if augment is None or not len(images):
        return None
    return augment if tuple(augment.evaluate(images[:1]).shape[1:]) == tuple(model.image_shape) else None


def _load(name: str, facts: RecipeFacts, data_dir: Path | None) -> Source:
    if name.startswith(("folder:", "csv:")):
        return data.load(name, size=facts.size, channels=facts.channels)
    return data.load(name, data_dir=data_dir)


def _split(source: Source, split_name: str, facts: RecipeFacts) -> Split:
    if split_name == "validation":
        share = facts.validation or USUAL_VALIDATION
        return data.train_and_validation(source, share, fold=facts.fold, consecutive=facts.consecutive)[1]
    found = source.splits.get(split_name)
    if found is None:
        raise TorchcapsError(
            f"{source.name} has no split {split_name!r}; it has {', '.join(source.splits)}"
            + ("" if split_name == "test" else " and validation, held out of train")
        )
    return found


def check_fit(model: Model, examples: Examples) -> None:
    """Raise when the data has other classes than the model, or pictures of another size."""
    _check_classes(model, examples)
    if len(examples):
        check_size(model, examples.images(torch.zeros(1, dtype=torch.int64)))


def _check_classes(model: Model, examples: Examples) -> None:
    if len(examples.classes) != model.num_classes:
        raise TorchcapsError(
            f"the model tells {model.num_classes} classes apart, but {examples.name} has {len(examples.classes)}; "
            "evaluate on the data it was trained for, named with --data"
        )
