"""Each picture of one's own keeps the name of its file, whatever is held out or left out."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from PIL import Image

from published_files import picture_bytes, write_picture_folder
from torchcaps.data import load, train_and_validation
from torchcaps.data.source import Source


def check_names(folder, source: Source, expected: int) -> None:
    """Every name is that of the file whose pixels stand at its place."""
    train, validation = train_and_validation(source, 0.25, fold=1)
    named = []
    for split in (*source.splits.values(), train, validation):
        assert split.files is not None
        for picture, name in zip(split.images, split.files, strict=True):
            assert int(picture[0, 0, 0]) == np.asarray(Image.open(folder / name))[0, 0]
    for split in source.splits.values():
        named += split.files
    assert len(named) == len(set(named)) == expected


def test_those_of_a_folder(tmp_path):
    write_picture_folder(tmp_path, {"cat": 9, "dog": 12})
    (tmp_path / "cat" / "002.png").write_bytes(b"damaged")
    check_names(tmp_path, load(f"folder:{tmp_path}"), expected=20)


def test_those_of_a_divided_folder(tmp_path):
    for part, count in (("train", 6), ("val", 3), ("test", 4)):
        write_picture_folder(tmp_path / part, {"a": count, "b": count})
    source = load(f"folder:{tmp_path}")
    assert source.test.files[:2] == ("test/a/000.png", "test/a/001.png")
    assert source.validation.files[-1] == "val/b/002.png"


@pytest.mark.parametrize("split", [False, True])
def test_those_of_a_table(tmp_path, split):
    write_picture_folder(tmp_path, {"a": 8, "b": 8})
    (tmp_path / "a" / "001.png").write_bytes(b"damaged")
    lines = ["path,label" + ",split" * split]
    for name in "ab":
        lines += [f"{name}/{i:03}.png,{name}" + (",test" if i % 3 == 0 else ",train") * split for i in range(8)]
    (tmp_path / "list.csv").write_text("\n".join(lines))
    check_names(tmp_path, load(f"csv:{tmp_path}/list.csv"), expected=15)


def test_sets_of_many_pictures_in_a_file_have_none():
    assert load("mnist-sample").train.files is None


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no names outside of UTF-8")
def test_a_name_outside_of_utf_8_can_be_printed(tmp_path):
    write_picture_folder(tmp_path, {"a": 2, "b": 2})
    odd = os.fsencode(tmp_path / "a") + b"/\xff.png"
    with open(odd, "wb") as file:
        file.write(picture_bytes(np.zeros((8, 8), np.uint8)))
    source = load(f"folder:{tmp_path}")
    assert "a/\\xff.png" in [*source.train.files, *source.test.files]
