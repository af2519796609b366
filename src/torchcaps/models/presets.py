"""``paper`` is what the authors wrote, ``official`` what their code does: every choice on which the two differ.

The model reads the first group. Recipes and data generators read the others, so that one name stands for one
reproducible set-up from data to evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PRESETS", "Preset", "get_preset"]


@dataclass(frozen=True)
class Preset:
    """One column of the comparison between the authors' text and their code.

    Attributes:
        loss_balance: see :class:`torchcaps.nn.CapsNetLoss`.
        primary_scale: factor on the primary convolution; ``None`` stands for 1 / number of types.
        capsule_bias: a learned bias inside the routing loop of the class capsules.
        start_values: ``"authors"``, or ``"torch"`` for PyTorch's own in convolutions and decoder.
        routing_gradient: through ``"all"`` iterations or only the ``"last"``; the text is silent.

        learning_rate, decay_rate, decay_steps, learning_rate_floor: Adam with
            ``max(floor, rate · decay_rate ** (step / decay_steps))``; the text names Adam's defaults and an
            exponential decay without its constants, so both columns carry those of the code.
        batch_size, steps: the text gives no number of steps for MNIST.
        shift_pixels: MNIST augmentation, ± this many in each direction, zeros move in.
        selection: which weights are evaluated.

        multimnist_shift, multimnist_pad: pixels; the canvas is 28 + 2·pad.
        multimnist_base_shift_once: draw the base digit's shift once for all its 1000 pairs.
        multimnist_exact_match: a prediction counts only if both digits are right.
        multimnist_decoder_passes: one reconstruction for each digit, shared weights, both losses added.
        affnist_shift, affnist_pad: training digits placed on 40×40.

        cifar10_*: the ensemble and its inputs; the code has no decoder there.
    """

    name: str

    loss_balance: str
    primary_scale: float | None
    capsule_bias: bool
    start_values: str
    routing_gradient: str = "all"
    squash: str = "Eq. 1, no epsilon"
    reconstruction_scale: float = 0.0005

    learning_rate: float = 1e-3
    decay_rate: float = 0.96
    decay_steps: int = 2000
    learning_rate_floor: float = 1e-6
    batch_size: int = 128
    steps: int | None = None
    shift_pixels: int = 2
    selection: str = "last"

    multimnist_shift: int = 4
    multimnist_pad: int = 4
    multimnist_base_shift_once: bool = False
    multimnist_exact_match: bool = True
    multimnist_decoder_passes: int = 2
    multimnist_decay_steps: int = 20_000
    affnist_shift: int = 6
    affnist_pad: int = 6

    cifar10_crop: int = 24
    cifar10_primary_types: int = 64
    cifar10_leaky: bool = True
    cifar10_models: int = 7
    cifar10_padding: str = "valid"
    cifar10_flip: bool = False
    cifar10_brightness: float = 0.0
    cifar10_contrast: tuple[float, float] = (1.0, 1.0)
    cifar10_standardize: bool = False
    cifar10_decoder: str = "fc"


PRESETS = {
    "paper": Preset(
        name="paper",
        loss_balance="paper",
        primary_scale=1.0,
        capsule_bias=False,
        start_values="torch",
    ),
    "official": Preset(
        name="official",
        loss_balance="official",
        primary_scale=None,
        capsule_bias=True,
        start_values="authors",
        steps=300_000,
        multimnist_shift=6,
        multimnist_base_shift_once=True,
        cifar10_padding="same",
        cifar10_flip=True,
        cifar10_brightness=63.0,
        cifar10_contrast=(0.2, 1.8),
        cifar10_standardize=True,
        cifar10_decoder="none",
    ),
}


def get_preset(name: str) -> Preset:
    """The preset of this name."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; choose from {', '.join(map(repr, PRESETS))}")
    return PRESETS[name]
