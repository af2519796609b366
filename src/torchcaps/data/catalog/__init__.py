"""The data sets known by name: files, checksums, mirrors, figures. Adding one means adding an entry."""

from fnmatch import fnmatch

from torchcaps.data.catalog.digits import FASHION_MNIST, FASHION_SAMPLE, KMNIST, MNIST, MNIST_SAMPLE, NOTMNIST
from torchcaps.data.catalog.emnist import EMNIST
from torchcaps.data.catalog.medical import CHEST_XRAY, PNEUMONIAMNIST
from torchcaps.data.catalog.objects import AFFNIST, CIFAR10, COIL20, COIL20_AZIMUTHS, SMALLNORB, SVHN
from torchcaps.data.info import SourceInfo

__all__ = ["CATALOG", "list_sources"]

CATALOG: dict[str, SourceInfo] = {
    info.name: info
    for info in (
        MNIST,
        MNIST_SAMPLE,
        FASHION_MNIST,
        FASHION_SAMPLE,
        KMNIST,
        *EMNIST,
        NOTMNIST,
        AFFNIST,
        CIFAR10,
        SVHN,
        SMALLNORB,
        COIL20,
        COIL20_AZIMUTHS,
        PNEUMONIAMNIST,
        CHEST_XRAY,
    )
}


def list_sources(pattern: str = "*") -> list[SourceInfo]:
    """What is known of each data set that :func:`torchcaps.data.load` takes by name.

    Example:
        >>> [info.name for info in list_sources("*-mnist")]
        ['fashion-mnist', 'emnist-mnist']
    """
    return [info for name, info in CATALOG.items() if fnmatch(name, pattern)]
