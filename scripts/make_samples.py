"""Make the pictures that torchcaps carries with it, so that a first run needs neither network nor data.

    python scripts/make_samples.py                     # fetches MNIST and Fashion-MNIST where they are not here
    python scripts/make_samples.py --data-dir ~/data

The rule: of each class, the 100 training pictures and the 50 test pictures whose key, the SHA-256 of the text
"train:INDEX" or "test:INDEX", is smallest; they stand in the order of the original. No random generator takes
part, so the choice is the same with every version of every library.
"""

from __future__ import annotations

import argparse
import hashlib
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from torchcaps.data import load
from torchcaps.data.sample import SAMPLES
from torchcaps.eval.output import write_file

PER_CLASS = {"train": 100, "test": 50}
ATTRIBUTIONS = {
    "mnist": (
        "A sample of MNIST by Yann LeCun and Corinna Cortes, 1,000 training and 500 test digits chosen by a fixed "
        "rule, pixels unchanged. MNIST derives from NIST Special Databases 1 and 3. "
        "Licence: Creative Commons Attribution-ShareAlike 3.0, https://creativecommons.org/licenses/by-sa/3.0/"
    ),
    "fashion-mnist": (
        "A sample of Fashion-MNIST, 1,000 training and 500 test pictures chosen by a fixed rule, pixels unchanged. "
        "Copyright (c) 2017 Zalando SE, https://tech.zalando.com. Licence: MIT, see NOTICE."
    ),
}
FOLDER = Path(__file__).parent.parent / "src" / "torchcaps" / "data"


def chosen_indices(split: str, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest SHA-256 keys of each class, in the order of the original."""
    keys = np.array([hashlib.sha256(f"{split}:{index}".encode()).hexdigest() for index in range(len(labels))])
    by_key = np.argsort(keys)
    count = PER_CLASS[split]
    return np.sort(np.concatenate([by_key[labels[by_key] == j][:count] for j in np.unique(labels)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="where the data sets lie; fetched when they are not here")
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    for original, attribution in ATTRIBUTIONS.items():
        source = load(original, data_dir=arguments.data_dir)
        if source.is_sample:
            parser.exit(1, f"{original} is not here and could not be fetched; say with --data-dir where it lies\n")
        columns: dict[str, NDArray[np.generic]] = {"attribution": np.array(attribution)}
        for name, split in (("train", source.train), ("test", source.test)):
            assert split is not None  # both have one
            indices = chosen_indices(name, split.labels.numpy())
            columns[f"{name}_images"] = split.images[indices, 0].numpy()
            columns[f"{name}_labels"] = split.labels[indices].numpy().astype(np.uint8)
            columns[f"{name}_indices"] = indices.astype(np.int32)
        packed = io.BytesIO()
        np.savez_compressed(packed, allow_pickle=False, **columns)  # NumPy dates every entry 1980, so the bytes repeat
        file = write_file(arguments.out / f"{SAMPLES[original]}.npz", packed.getvalue())
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
