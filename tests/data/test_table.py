"""A CSV file of pictures: one class a picture, several, groups and splits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from published_files import picture_bytes
from torchcaps.data import load
from torchcaps.errors import DataError


@pytest.fixture
def table(tmp_path):
    """Write ten pictures and a CSV file about them; ``{}`` in a line stands for the path."""
    (tmp_path / "pictures").mkdir()
    for number in range(10):
        (tmp_path / "pictures" / f"{number}.png").write_bytes(picture_bytes(np.full((6, 6), 20 * number, np.uint8)))

    def write(header: str, lines: list[str]) -> str:
        rows = [line.format(f"pictures/{number}.png") for number, line in enumerate(lines)]
        (tmp_path / "list.csv").write_text("\n".join([header, *rows]))
        return f"csv:{tmp_path / 'list.csv'}"

    return write


def test_one_class_a_picture(table):
    source = load(table("path,label", ["{},cat", "{},dog"] * 5))
    assert source.classes == ("cat", "dog")
    assert (len(source.train), len(source.test)) == (8, 2)
    assert source.train.labels.dtype == torch.int64


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        ("path,labels", ["{},cat; dog", "{},dog", "{},"] * 3 + ["{},cat"]),
        ("path,cat,dog", ["{},1,1", "{},0,1", "{},0,0"] * 3 + ["{},1,0"]),
    ],
)
def test_several_classes_a_picture(table, header, lines):
    source = load(table(header, lines))
    assert source.classes == ("cat", "dog")
    assert source.train.labels.dtype == torch.bool
    both = [a + b for a, b in zip(source.train.class_counts(2), source.test.class_counts(2), strict=True)]
    assert both == [4, 6]


def test_splits_and_groups_are_those_of_the_file(table):
    lines = ["{},a,one,train", "{},b,two,train", "{},a,three,test"] + ["{},b,two,train"] * 7
    source = load(table("path,label,group,split", lines))
    assert (len(source.train), len(source.test)) == (9, 1)
    assert source.test.images[0, 0, 0, 0].item() == 40
    lines[2] = "{},a,two,test"
    with pytest.raises(DataError, match="1 groups stand in train and in test"):
        load(table("path,label,group,split", lines))


def test_blanks_make_no_other_class_or_group(table):
    with pytest.raises(DataError, match="1 groups stand in train and in test"):
        load(table("path,label,group,split", ["{},a,one,train", "{},b,two,train", "{},a,one ,test"]))
    assert load(table("path,label", ["{},cat", "{}, cat", "{},dog "] * 3)).classes == ("cat", "dog")


def test_a_missing_picture_is_listed_or_an_error(table):
    name = table("path,label", ["{},a", "{},b"] * 5 + ["pictures/none.png,a"])
    assert load(name).skipped[0].endswith("none.png: there is no such file")
    with pytest.raises(DataError, match=r"none\.png"):
        load(name, strict=True)


@pytest.mark.parametrize(
    ("header", "lines", "message"),
    [
        ("file,label", ["{},a"], "a column named path"),
        ("path;label", ["{};a"], "expected commas between the columns, found ';'"),
        ("path\tlabel", ["{}\ta"], r"expected commas between the columns, found '\\t'"),
        ("path,label", [], "lists no pictures"),
        ("path,label", ["{},a"] * 4, "at least two, found a"),
        ("path,label", ["{},a", "{}"], "line 3: expected 2 values"),
        ("path,label", ["{},a", "{},b,c"], "line 3: expected 2 values"),
        ("path,cat,dog", ["{},1,0", "{},yes,1"], "column 'cat' should be 0 or 1, found 'yes'"),
        ("path,label,split", ["{},a,train", "{},b,later"], "train or test, found 'later'"),
        ("path,label,split", ["{},a,train", "{},b,train"], "on one side"),
        ("path,label,group", ["{},a,x", "{},b,"], "1 pictures have no group"),
        ("path,label,split", ["{},a,train", "{},b,train", "{},c,test"], "without readable pictures in train: c"),
        ("path,label", ["{},a", "{},b", "{}, "], "1 pictures have no label, the first is pictures/2.png"),
        ("path,label,split", ["{},a,train", "{},b,train", "./pictures/0.png,a,test"], "is listed in line 2 already"),
        ("path,label,split", ["{},a,train", "{},b,train", "x/../pictures/0.png,a,test"], "is listed in line 2 already"),
        ("path", ["{}"], "found none"),
    ],
)
def test_other_files_are_refused(table, header, lines, message):
    with pytest.raises(DataError, match=message):
        load(table(header, lines))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "list.csv").write_bytes(b"path,label\n\xff\xfe\x00,a")
    with pytest.raises(DataError, match="save it as CSV in UTF-8"):
        load(f"csv:{tmp_path / 'list.csv'}")
    with pytest.raises(DataError, match="cannot be read: No such file"):
        load(f"csv:{tmp_path / 'absent.csv'}")


def test_a_table_of_pictures_by_classes_has_a_limit(tmp_path):
    rows = [f"{number}.png,class {number}" for number in range(12_000)]
    (tmp_path / "list.csv").write_text("\n".join(["path,labels", *rows]))
    with pytest.raises(DataError, match="12,000 pictures of 12,000 classes are too many"):
        load(f"csv:{tmp_path / 'list.csv'}")
