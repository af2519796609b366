"""An image that a user has put into two classes, or into training and test, is named before anyone trusts a number."""

from __future__ import annotations

import numpy as np
import pytest

from published_files import picture_bytes, write_picture_folder
from torchcaps.cli.app import main
from torchcaps.data import load, sample_digits
from torchcaps.data.repeats import Repeats
from torchcaps.train import fit
from training_runs import random_source, tiny_recipe


def copy(folder, source: str, target: str) -> None:
    (folder / target).write_bytes((folder / source).read_bytes())


@pytest.fixture
def mixed(tmp_path):
    """Twelve images of each class; two stand under both, once as another kind of file."""
    write_picture_folder(tmp_path / "mixed", {"cat": 12, "dog": 12}, size=28)
    copy(tmp_path / "mixed", "cat/003.png", "dog/same.png")
    (tmp_path / "mixed" / "cat" / "also.bmp").write_bytes(picture_bytes(np.full((28, 28), 45, np.uint8), "BMP"))
    return tmp_path / "mixed"


def test_an_image_under_two_classes_is_found_by_its_pixels(mixed):
    found = load(f"folder:{mixed}").repeats
    assert {frozenset(group) for group in found.in_two_classes} == {
        frozenset({"cat/003.png", "dog/same.png"}),
        frozenset({"cat/also.bmp", "dog/005.png"}),
    }
    assert found.in_two_splits == ()


def test_an_image_in_training_and_test_is_found_also_where_the_folders_are_given(tmp_path):
    for part, first in (("train", 0), ("test", 100)):
        for value, name in enumerate(("cat", "dog")):
            (tmp_path / part / name).mkdir(parents=True)
            for number in range(3):
                pixels = np.full((8, 8), first + 10 * value + number, np.uint8)
                (tmp_path / part / name / f"{number}.png").write_bytes(picture_bytes(pixels))
    copy(tmp_path, "train/cat/1.png", "test/cat/again.png")
    copy(tmp_path, "train/cat/2.png", "test/dog/wrong.png")
    copy(tmp_path, "train/dog/1.png", "train/dog/twice.png")  # a copy in one class of one split misleads nobody
    assert load(f"folder:{tmp_path}").repeats == Repeats(
        in_two_classes=(("train/cat/2.png", "test/dog/wrong.png"),),
        in_two_splits=(("train/cat/1.png", "test/cat/again.png"),),
    )


def test_a_table_of_several_classes_an_image_is_compared_by_all_of_them(mixed, tmp_path):
    lines = ["cat/003.png,striped;sleeping,train", "dog/same.png,striped,train", "dog/005.png,striped,train"]
    lines += ["cat/also.bmp,striped,test", "cat/000.png,sleeping,test"]
    (mixed / "all.csv").write_text("\n".join(["path,labels,split", *lines]))
    assert load(f"csv:{mixed / 'all.csv'}").repeats == Repeats(
        in_two_classes=(("cat/003.png", "dog/same.png"),), in_two_splits=(("dog/005.png", "cat/also.bmp"),)
    )


def test_many_are_counted_and_a_few_are_named():
    groups = tuple((f"a/{number}.png", f"b/{number}.png") for number in range(5))
    assert Repeats(in_two_classes=groups).remarks == [
        "5 images are there twice, under two classes: a/0.png = b/0.png, a/1.png = b/1.png, a/2.png = b/2.png and 2 "
        "more; keep each under one"
    ]
    assert Repeats(in_two_splits=groups[:1]).remarks == [
        "1 image is there twice, in two splits: a/0.png = b/0.png; what is trained on should not be tested on"
    ]


def test_data_without_files_of_its_own_is_left_alone():
    assert sample_digits("train").files is None
    assert random_source((1, 8, 8)).repeats.remarks == []  # its test split is the start of its training split


def test_data_info_names_all(mixed, capsys):
    assert main(["data", "info", f"folder:{mixed}"]) == 0
    captured = capsys.readouterr()
    assert "2 images under two classes:\n" in captured.out
    assert "dog/same.png" in captured.out
    assert captured.err.startswith("WARNING: 2 images are there twice, under two classes: ")


def test_training_warns_and_goes_on(mixed, tmp_path):
    recipe = tiny_recipe(f"data.source=folder:{mixed}", "data.validation=0", "training.steps=1")
    with pytest.warns(
        UserWarning, match=r"2 images are there twice, under two classes: .*data info folder:.* names all"
    ):
        fit(recipe, run_dir=tmp_path / "run", device="cpu", progress=False)
    assert (tmp_path / "run" / "final" / "model.safetensors").is_file()
