"""From a file or a generator to checked tensors: sources, readers, splits, loaders."""

from torchcaps.data.info import SourceInfo
from torchcaps.data.registry import SampleDataWarning, list_sources, load
from torchcaps.data.sample import sample_digits
from torchcaps.data.source import Source, Split, TestSplit, TrainSplit, ValidationSplit
from torchcaps.data.splits import train_and_validation, validation_split

__all__ = [
    "SampleDataWarning",
    "Source",
    "SourceInfo",
    "Split",
    "TestSplit",
    "TrainSplit",
    "ValidationSplit",
    "list_sources",
    "load",
    "sample_digits",
    "train_and_validation",
    "validation_split",
]
