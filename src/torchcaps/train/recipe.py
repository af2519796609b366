"""A recipe: everything that decides the outcome of a training run, as frozen and checked dataclasses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torchcaps.errors import TorchcapsError

__all__ = [
    "DataSection",
    "LogSection",
    "ModelSection",
    "OptimizerSection",
    "Recipe",
    "RecipeError",
    "ScheduleSection",
    "TrainingSection",
]


class RecipeError(TorchcapsError):
    """A recipe that cannot be followed: an unknown key, a value out of range, a file that cannot be read."""


def require(fits: bool, key: str, expected: str, came: object) -> None:
    """Raise with the key, what was expected and what came."""
    if not fits:
        raise RecipeError(f"{key} must be {expected}, got {came!r}")


def one_of(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise when a name is not among the choices."""
    require(value in choices, key, f"one of {', '.join(map(repr, choices))}", value)


@dataclass(frozen=True)
class ModelSection:
    """``[model]``: a name of ``torchcaps.list_models()``; every other key is an argument of that model.

    ``image_shape`` and ``num_classes`` follow from the data and are not written here.
    """

    name: str = "capsnet"
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in ("image_shape", "num_classes"):
            if key in self.settings:
                raise RecipeError(f"model.{key} follows from the data; remove it, or change data.size or data.augment")


@dataclass(frozen=True)
class DataSection:
    """``[data]``: what is learned from.

    Attributes:
        source: a name of ``torchcaps data list``, or ``folder:PATH``, ``csv:FILE``, ``npz:FILE``, ``idx:FOLDER``.
        size, channels: how to read one's own pictures; 0 leaves them as they are.
        task: ``"single"`` pictures, or ``"multimnist"`` pairs made from them.
        variant: of MultiMNIST, ``"paper"`` or ``"official"``.
        augment: a list of ``{name = ..., parameters}``, in order; see ``docs/loader.md``.
        validation: share of the training set that is held out to make choices by; 0 trains on all of it.
        fold: which share: 1, 2, … hold others out than those before, for cross-validation.
        validation_consecutive: hold out examples that follow each other in the set, and with them, in MNIST, writers;
            else single ones, class by class.
        validation_pairs: pairs of held-out digits that are measured, for MultiMNIST; evenly spaced among all.
        validation_augmented: measure held-out pictures as the augmentation changes them, each once and always the same
            way; else only the fixed parts of it act (a central crop, a place in the middle).
        drop_last: leave out the rest of an epoch that does not fill a batch.
        queue: read the set in its own order through a queue of so many entries, and draw from it; 0 shuffles epochs.
        copies: with a queue, how many times each example comes in a row, augmented anew each time.
    """

    source: str = "mnist"
    size: int = 0
    channels: int = 0
    task: str = "single"
    variant: str = "paper"
    augment: tuple[Mapping[str, Any], ...] = ()
    validation: float = 0.0
    fold: int = 0
    validation_consecutive: bool = False
    validation_pairs: int = 10_000
    validation_augmented: bool = False
    drop_last: bool = True
    queue: int = 0
    copies: int = 1

    def __post_init__(self) -> None:
        one_of("data.task", self.task, ("single", "multimnist"))
        one_of("data.variant", self.variant, ("paper", "official"))
        require(0 <= self.validation < 1, "data.validation", "a share from 0 to below 1", self.validation)
        require(self.fold >= 0, "data.fold", "0 or more", self.fold)
        if self.fold and not self.validation:
            raise RecipeError("data.fold says which share is held out, so data.validation must be above 0")
        if self.validation_consecutive and not self.validation:
            raise RecipeError("data.validation_consecutive says how to hold out, so data.validation must be above 0")
        require(self.size >= 0, "data.size", "0 or a number of pixels", self.size)
        require(self.channels in (0, 1, 3), "data.channels", "0, 1 or 3", self.channels)
        require(self.validation_pairs >= 1, "data.validation_pairs", "1 or more", self.validation_pairs)
        if self.task == "multimnist" and self.augment:
            raise RecipeError("data.augment is not used with task = 'multimnist', whose pairs are shifted already")
        require(self.queue >= 0, "data.queue", "0 or a number of examples such as 5000", self.queue)
        require(self.copies >= 1, "data.copies", "1 or more", self.copies)
        if self.queue and (self.drop_last or self.task == "multimnist"):
            raise RecipeError("data.queue reads single pictures to the end of the set: it needs data.drop_last = false")
        if self.copies > 1 and not self.queue:
            raise RecipeError("data.copies follow each other in a queue, so data.queue must be above 0, such as 5000")


@dataclass(frozen=True)
class OptimizerSection:
    """``[optimizer]``: ``"adam"`` or ``"adamw"``; ``clip_norm`` 0 leaves gradients as they are.

    ``sharpness`` above 0 seeks weights whose whole neighbourhood has a low loss: the gradient is taken that far uphill
    of the weights (Foret et al. 2021). A step then takes twice as long. Dropout draws anew for the second gradient, and
    batch normalisation counts both.
    """

    name: str = "adam"
    lr: float = 1e-3
    betas: tuple[float, ...] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip_norm: float = 0.0
    sharpness: float = 0.0

    def __post_init__(self) -> None:
        one_of("optimizer.name", self.name, ("adam", "adamw"))
        require(self.lr > 0 and math.isfinite(self.lr), "optimizer.lr", "above 0", self.lr)
        right = len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas)
        require(right, "optimizer.betas", "two numbers from 0 to below 1", self.betas)
        require(0 < self.eps < math.inf, "optimizer.eps", "above 0", self.eps)
        require(0 <= self.weight_decay < math.inf, "optimizer.weight_decay", "0 or more", self.weight_decay)
        require(0 <= self.clip_norm < math.inf, "optimizer.clip_norm", "0 or more", self.clip_norm)
        require(0 <= self.sharpness < math.inf, "optimizer.sharpness", "0 or more, such as 0.05", self.sharpness)


@dataclass(frozen=True)
class ScheduleSection:
    """``[schedule]``: how the rate falls; see :func:`torchcaps.train.schedule.learning_rate`.

    ``decay_rate`` and ``decay_steps`` belong to ``"exponential"``; ``floor`` is the lowest rate of all after
    the warm-up.
    """

    name: str = "exponential"
    decay_rate: float = 0.96
    decay_steps: int = 2000
    floor: float = 1e-6
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        one_of("schedule.name", self.name, ("constant", "exponential", "cosine", "linear"))
        require(0 < self.decay_rate <= 1, "schedule.decay_rate", "above 0 and at most 1", self.decay_rate)
        require(self.decay_steps >= 1, "schedule.decay_steps", "1 or more", self.decay_steps)
        require(0 <= self.floor < math.inf, "schedule.floor", "0 or more", self.floor)
        require(self.warmup_steps >= 0, "schedule.warmup_steps", "0 or more", self.warmup_steps)


@dataclass(frozen=True)
class TrainingSection:
    """``[training]``: how long and how.

    Attributes:
        batch_size: examples in a step, over all processes together.
        steps, epochs: the length; set one of them, the other is 0.
        precision: ``"fp32"``, ``"bf16"`` (autocast), or ``"auto"``: bf16 on a GPU that has it, else fp32.
        ema: decay of the moving average of the weights, which is then what is evaluated; 0 keeps none.
        stop_at_accuracy: end the run at the first look at the held-out examples (every ``log.validate_every`` steps)
            that finds this share of them right, such as 0.992; 0 never. Needs ``data.validation``.
        compile, capture: ``torch.compile`` and the CUDA graph, ``"auto"``, ``"on"`` or ``"off"``.
    """

    batch_size: int = 128
    steps: int = 0
    epochs: float = 0.0
    precision: str = "auto"
    ema: float = 0.0
    stop_at_accuracy: float = 0.0
    compile: str = "auto"
    capture: str = "auto"

    def __post_init__(self) -> None:
        require(self.batch_size >= 1, "training.batch_size", "1 or more", self.batch_size)
        require(self.steps >= 0, "training.steps", "0 or more", self.steps)
        require(0 <= self.epochs < math.inf, "training.epochs", "0 or more", self.epochs)
        if bool(self.steps) == bool(self.epochs):
            raise RecipeError(
                f"set training.steps or training.epochs, one of the two; got steps = {self.steps} and "
                f"epochs = {self.epochs:g}"
            )
        one_of("training.precision", self.precision, ("auto", "fp32", "bf16"))
        require(0 <= self.ema < 1, "training.ema", "0, or a decay below 1 such as 0.999", self.ema)
        wanted = self.stop_at_accuracy
        require(0 <= wanted <= 1, "training.stop_at_accuracy", "0, or a share of at most 1 such as 0.992", wanted)
        one_of("training.compile", self.compile, ("auto", "on", "off"))
        one_of("training.capture", self.capture, ("auto", "on", "off"))


@dataclass(frozen=True)
class LogSection:
    """``[log]``: what is written and how often, in steps; 0 is once an epoch.

    It does not change the weights, but for ``validate_every`` where ``training.stop_at_accuracy`` ends the run.

    ``keep`` is how many of the last checkpoints stay. ``tensorboard`` is ``"auto"`` (when it is installed), ``"on"``
    or ``"off"``.
    """

    every: int = 50
    validate_every: int = 0
    checkpoint_every: int = 0
    pictures_every: int = 0
    keep: int = 12
    tensorboard: str = "auto"

    def __post_init__(self) -> None:
        require(self.every >= 1, "log.every", "1 or more", self.every)
        for key in ("validate_every", "checkpoint_every", "pictures_every"):
            require(getattr(self, key) >= 0, f"log.{key}", "0 or more", getattr(self, key))
        require(self.keep >= 1, "log.keep", "1 or more", self.keep)
        one_of("log.tensorboard", self.tensorboard, ("auto", "on", "off"))


@dataclass(frozen=True)
class Recipe:
    """All sections together. Load one by name with :func:`torchcaps.train.load_recipe`."""

    name: str = "custom"
    description: str = ""
    seed: int = 0
    model: ModelSection = field(default_factory=ModelSection)
    data: DataSection = field(default_factory=DataSection)
    optimizer: OptimizerSection = field(default_factory=OptimizerSection)
    schedule: ScheduleSection = field(default_factory=ScheduleSection)
    training: TrainingSection = field(default_factory=lambda: TrainingSection(epochs=50))
    log: LogSection = field(default_factory=LogSection)

    def __post_init__(self) -> None:
        require(0 <= self.seed < 2**63, "seed", "0 or more and below 2⁶³", self.seed)
        fits = self.schedule.floor <= self.optimizer.lr
        require(fits, "schedule.floor", f"at most optimizer.lr, which is {self.optimizer.lr:g}", self.schedule.floor)
        if self.training.stop_at_accuracy and not self.data.validation:
            raise RecipeError(
                "training.stop_at_accuracy is measured on held-out examples, but data.validation is 0; hold some out, "
                "for example data.validation=0.1"
            )
