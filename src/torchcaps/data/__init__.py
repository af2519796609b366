"""From a file or a generator to checked tensors: sources, readers, splits."""

from torchcaps.data.sample import sample_digits
from torchcaps.data.source import Source, Split, TestSplit, TrainSplit

__all__ = ["Source", "Split", "TestSplit", "TrainSplit", "sample_digits"]
