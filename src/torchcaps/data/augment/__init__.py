"""Augmentation on the device: per example, seeded by the example's position, written in recipes by name."""

from torchcaps.data.augment.deform import Affine, Deform, Elastic
from torchcaps.data.augment.geometric import Crop, Cutout, Flip, Place, Shift
from torchcaps.data.augment.photometric import Brightness, Contrast, Standardize
from torchcaps.data.augment.pipeline import AUGMENTATIONS, Augmentation, Augmentations, build
from torchcaps.data.augment.sometimes import Sometimes

__all__ = [
    "AUGMENTATIONS",
    "Affine",
    "Augmentation",
    "Augmentations",
    "Brightness",
    "Contrast",
    "Crop",
    "Cutout",
    "Deform",
    "Elastic",
    "Flip",
    "Place",
    "Shift",
    "Sometimes",
    "Standardize",
    "build",
]
