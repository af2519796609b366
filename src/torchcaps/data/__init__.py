"""From a file or a generator to batches on the device: sources, splits, generators, augmentation, loaders."""

from torchcaps.data import augment
from torchcaps.data.affine_digits import AffineDigits, place_on_canvas
from torchcaps.data.info import SourceInfo
from torchcaps.data.loader import Batch, Loader, evaluation_batches
from torchcaps.data.moved_digits import MovedDigits, move
from torchcaps.data.multi_loader import MultiLoader
from torchcaps.data.multimnist import MultiBatch, MultiMNIST
from torchcaps.data.registry import SampleDataWarning, list_sources, load
from torchcaps.data.sample import sample_digits
from torchcaps.data.source import Source, Split, TestSplit, TrainSplit, ValidationSplit
from torchcaps.data.splits import train_and_validation, validation_split

__all__ = [
    "AffineDigits",
    "Batch",
    "Loader",
    "MovedDigits",
    "MultiBatch",
    "MultiLoader",
    "MultiMNIST",
    "SampleDataWarning",
    "Source",
    "SourceInfo",
    "Split",
    "TestSplit",
    "TrainSplit",
    "ValidationSplit",
    "augment",
    "evaluation_batches",
    "list_sources",
    "load",
    "move",
    "place_on_canvas",
    "sample_digits",
    "train_and_validation",
    "validation_split",
]
