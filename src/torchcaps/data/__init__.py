"""From a file or a generator to batches on the device: sources, splits, generators, augmentation, loaders."""

from typing import TYPE_CHECKING

from torchcaps._lazy import imported_on_demand

if TYPE_CHECKING:
    from torchcaps.data import augment
    from torchcaps.data.affine_digits import AffineDigits, place_on_canvas
    from torchcaps.data.catalog import list_sources
    from torchcaps.data.info import SourceInfo
    from torchcaps.data.loader import Batch, Loader, evaluation_batches
    from torchcaps.data.moved_digits import MovedDigits, move
    from torchcaps.data.multi_loader import MultiLoader
    from torchcaps.data.multimnist import MultiBatch, MultiMNIST
    from torchcaps.data.registry import SampleDataWarning, load
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

_HOME = {
    "AffineDigits": "affine_digits",
    "Batch": "loader",
    "Loader": "loader",
    "MovedDigits": "moved_digits",
    "MultiBatch": "multimnist",
    "MultiLoader": "multi_loader",
    "MultiMNIST": "multimnist",
    "SampleDataWarning": "registry",
    "Source": "source",
    "SourceInfo": "info",
    "Split": "source",
    "TestSplit": "source",
    "TrainSplit": "source",
    "ValidationSplit": "source",
    "evaluation_batches": "loader",
    "list_sources": "catalog",
    "load": "registry",
    "move": "moved_digits",
    "place_on_canvas": "affine_digits",
    "sample_digits": "sample",
    "train_and_validation": "splits",
    "validation_split": "splits",
}
__getattr__, __dir__ = imported_on_demand(__name__, _HOME, __all__)
