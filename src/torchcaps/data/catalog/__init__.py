"""The data sets known by name: files, checksums, mirrors, figures. Adding one means adding an entry."""

from torchcaps.data.catalog.digits import FASHION_MNIST, FASHION_SAMPLE, KMNIST, MNIST, MNIST_SAMPLE, NOTMNIST
from torchcaps.data.catalog.emnist import EMNIST
from torchcaps.data.catalog.medical import CHEST_XRAY, PNEUMONIAMNIST
from torchcaps.data.catalog.objects import AFFNIST, CIFAR10, COIL20, COIL20_AZIMUTHS, SMALLNORB, SVHN
from torchcaps.data.info import SourceInfo

__all__ = ["CATALOG"]

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
