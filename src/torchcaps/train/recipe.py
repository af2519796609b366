"""A recipe: everything that decides the outcome of a training run, as frozen and checked dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from torchcaps._foreign import shown
from torchcaps.data.augment.pipeline import MOST_STEPS
from torchcaps.errors import TorchcapsError
from torchcaps.models.registry import check_model_settings
from torchcaps.ranges import Anything, Chance, Count, Fold, Many, Number, Pixels, Share, Whole, check_values

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
        raise RecipeError(f"{key} must be {expected}, got {shown(came)}")


def check_section(section: Any, before: str) -> None:
    """Raise where a value is outside of the range that its field declares."""
    try:
        check_values(type(section), vars(section), before)
    except ValueError as error:
        raise RecipeError(str(error)) from None


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
        try:
            check_model_settings(self.name, self.settings, "model.")
        except (TypeError, ValueError) as error:
            raise RecipeError(str(error)) from None


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
    size: Pixels = 0
    channels: int = 0
    task: str = "single"
    variant: str = "paper"
    augment: Annotated[tuple[Mapping[str, Any], ...], Many(Anything(), most=MOST_STEPS)] = ()
    validation: Chance = 0.0
    fold: Fold = 0
    validation_consecutive: bool = False
    validation_pairs: Annotated[int, Whole(1, 10**9)] = 10_000
    validation_augmented: bool = False
    drop_last: bool = True
    queue: Annotated[int, Whole(0, 10**9)] = 0
    copies: Annotated[int, Whole(1, 1_000_000)] = 1

    def __post_init__(self) -> None:
        check_section(self, "data.")
        one_of("data.task", self.task, ("single", "multimnist"))
        one_of("data.variant", self.variant, ("paper", "official"))
        if self.fold and not self.validation:
            raise RecipeError("data.fold says which share is held out, so data.validation must be above 0")
        if self.validation_consecutive and not self.validation:
            raise RecipeError("data.validation_consecutive says how to hold out, so data.validation must be above 0")
        require(self.channels in (0, 1, 3), "data.channels", "0, 1 or 3", self.channels)
        if self.task == "multimnist" and self.augment:
            raise RecipeError("data.augment is not used with task = 'multimnist', whose pairs are shifted already")
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
    lr: Annotated[float, Number(0, 1e6, above=True)] = 1e-3
    betas: Annotated[tuple[float, ...], Many(Number(0, 1, below=True), 2, 2)] = (0.9, 0.999)
    eps: Annotated[float, Number(0, 1e6, above=True)] = 1e-8
    weight_decay: Annotated[float, Number(0, 1e6)] = 0.0
    clip_norm: Annotated[float, Number(0, 1e6)] = 0.0
    sharpness: Annotated[float, Number(0, 1e6)] = 0.0

    def __post_init__(self) -> None:
        check_section(self, "optimizer.")
        one_of("optimizer.name", self.name, ("adam", "adamw"))


@dataclass(frozen=True)
class ScheduleSection:
    """``[schedule]``: how the rate falls; see :func:`torchcaps.train.schedule.learning_rate`.

    ``decay_rate`` and ``decay_steps`` belong to ``"exponential"``; ``floor`` is the lowest rate of all after
    the warm-up.
    """

    name: str = "exponential"
    decay_rate: Annotated[float, Number(0, 1, above=True)] = 0.96
    decay_steps: Annotated[int, Whole(1, 10**12)] = 2000
    floor: Annotated[float, Number(0, 1e6)] = 1e-6
    warmup_steps: Count = 0

    def __post_init__(self) -> None:
        check_section(self, "schedule.")
        one_of("schedule.name", self.name, ("constant", "exponential", "cosine", "linear"))


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

    batch_size: Annotated[int, Whole(1, 1_000_000)] = 128
    steps: Count = 0
    epochs: Annotated[float, Number(0, 1e9)] = 0.0
    precision: str = "auto"
    ema: Chance = 0.0
    stop_at_accuracy: Share = 0.0
    compile: str = "auto"
    capture: str = "auto"

    def __post_init__(self) -> None:
        check_section(self, "training.")
        if bool(self.steps) == bool(self.epochs):
            raise RecipeError(
                f"set training.steps or training.epochs, one of the two; got steps = {self.steps} and "
                f"epochs = {self.epochs:g}"
            )
        one_of("training.precision", self.precision, ("auto", "fp32", "bf16"))
        one_of("training.compile", self.compile, ("auto", "on", "off"))
        one_of("training.capture", self.capture, ("auto", "on", "off"))


@dataclass(frozen=True)
class LogSection:
    """``[log]``: what is written and how often, in steps; 0 is once an epoch.

    It does not change the weights, but for ``validate_every`` where ``training.stop_at_accuracy`` ends the run.

    ``keep`` is how many checkpoints stay: the newest two, which a run can be resumed from, and older ones to look at,
    the first one among them and the others a factor apart. Above 2 there are some of the first epoch's steps, too.
    ``tensorboard`` is ``"auto"`` (when it is installed), ``"on"``
    or ``"off"``.
    """

    every: Annotated[int, Whole(1, 10**12)] = 50
    validate_every: Count = 0
    checkpoint_every: Count = 0
    pictures_every: Count = 0
    keep: Annotated[int, Whole(1, 1_000_000)] = 12
    tensorboard: str = "auto"

    def __post_init__(self) -> None:
        check_section(self, "log.")
        one_of("log.tensorboard", self.tensorboard, ("auto", "on", "off"))


@dataclass(frozen=True)
class Recipe:
    """All sections together. Load one by name with :func:`torchcaps.train.load_recipe`."""

    name: str = "custom"
    description: str = ""
    seed: Annotated[int, Whole(0)] = 0
    model: ModelSection = field(default_factory=ModelSection)
    data: DataSection = field(default_factory=DataSection)
    optimizer: OptimizerSection = field(default_factory=OptimizerSection)
    schedule: ScheduleSection = field(default_factory=ScheduleSection)
    training: TrainingSection = field(default_factory=lambda: TrainingSection(epochs=50))
    log: LogSection = field(default_factory=LogSection)

    def __post_init__(self) -> None:
        check_section(self, "")
        fits = self.schedule.floor <= self.optimizer.lr
        require(fits, "schedule.floor", f"at most optimizer.lr, which is {self.optimizer.lr:g}", self.schedule.floor)
        if self.training.stop_at_accuracy and not self.data.validation:
            raise RecipeError(
                "training.stop_at_accuracy is measured on held-out examples, but data.validation is 0; hold some out, "
                "for example data.validation=0.1"
            )
