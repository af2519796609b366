"""EMNIST: one archive at NIST, six ways to divide the same characters."""

from __future__ import annotations

import string

from torchcaps.data.catalog.digits import DIGITS, IDX_NAMES
from torchcaps.data.info import Download, FileSet, PublishedFile, SourceInfo

__all__ = ["EMNIST", "emnist_files"]

ALL_CHARACTERS = DIGITS + tuple(string.ascii_uppercase) + tuple(string.ascii_lowercase)
# Fifteen lower-case letters look like their capitals and are merged with them.
MERGED = DIGITS + tuple(string.ascii_uppercase) + tuple("abdefghnqrt")
LETTERS = tuple(upper + upper.lower() for upper in string.ascii_uppercase)
VARIANTS: dict[str, tuple[tuple[str, ...], int, int]] = {
    "balanced": (MERGED, 112_800, 18_800),
    "byclass": (ALL_CHARACTERS, 697_932, 116_323),
    "bymerge": (MERGED, 697_932, 116_323),
    "digits": (DIGITS, 240_000, 40_000),
    "letters": (LETTERS, 124_800, 20_800),
    "mnist": (DIGITS, 60_000, 10_000),
}


def emnist_files(variant: str) -> tuple[str, ...]:
    """Names of the four files of a variant, in the order of :data:`IDX_NAMES`."""
    return tuple(f"emnist-{variant}-{name.replace('t10k', 'test')}" for name in IDX_NAMES)


ARCHIVE = Download(
    ("https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",),
    "gzip.zip",
    "58c8d27c78d21e728a6bc7b3cc06412e",
    members=tuple(f"{name}.gz" for variant in VARIANTS for name in emnist_files(variant)),
)

EMNIST = tuple(
    SourceInfo(
        name=f"emnist-{variant}",
        title=f"EMNIST {variant}: handwritten characters",
        image_shape=(1, 28, 28),
        white_on_black=True,
        classes=classes,
        train_count=train_count,
        test_count=test_count,
        licence="public domain (NIST Special Database 19)",
        origin="Cohen, Afshar, Tapson, van Schaik; NIST",
        file_sets=(
            FileSet(
                tuple(PublishedFile(name) for name in emnist_files(variant)),
                ("emnist", "EMNIST/raw", "EMNIST", "gzip"),
            ),
        ),
        downloads=(ARCHIVE,),
    )
    for variant, (classes, train_count, test_count) in VARIANTS.items()
)
