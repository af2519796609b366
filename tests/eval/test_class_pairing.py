"""Classes are paired by name, and names that differ are an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import torchcaps
from torchcaps.cli.app import main
from torchcaps.data.source import TestSplit
from torchcaps.errors import TorchcapsError
from torchcaps.eval import Run, choose_examples, common_examples
from torchcaps.eval.class_pairing import check_same_classes, known_classes, pair_classes
from torchcaps.models import Model


def run_of(*classes: str, trained_on: str = "folder:animals", title: str = "run") -> Run:
    return Run(Path(title), title, facts={"data": {"name": trained_on, "classes": list(classes)}})


def network(num_classes: int) -> Model:
    return torchcaps.create_model("small-cnn", channels=2, hidden=8, num_classes=num_classes)


def split_of(labels: object) -> TestSplit:
    labels = torch.tensor(labels)
    return TestSplit(torch.zeros(len(labels), 1, 4, 4, dtype=torch.uint8), labels)


def test_names_in_another_order_are_paired():
    classes, split = pair_classes(run_of("cat", "dog", "ant"), 3, "csv:a", ("ant", "cat", "dog"), split_of([0, 1, 2]))
    assert (classes, split.labels.tolist()) == (("cat", "dog", "ant"), [2, 0, 1])
    assert isinstance(split, TestSplit)


def test_data_may_lack_classes_of_the_model():
    several = split_of([[True, False], [True, True]])
    classes, split = pair_classes(run_of("ant", "cat", "dog"), 3, "csv:a", ("dog", "ant"), several)
    assert (classes, split.labels.tolist()) == (("ant", "cat", "dog"), [[False, False, True], [True, False, True]])


def test_names_that_the_model_does_not_have_are_refused():
    with pytest.raises(TorchcapsError, match=r"tells apart cat, dog, but the classes of folder:b are cat, fox"):
        pair_classes(run_of("cat", "dog"), 2, "folder:b", ("cat", "fox"), split_of([0, 1]))
    many = tuple(f"object {number}" for number in range(30))
    with pytest.raises(TorchcapsError, match=r"object 11 and 18 more, but"):
        pair_classes(run_of(*many), 30, "folder:b", ("cat", "fox"), split_of([0, 1]))


@pytest.mark.parametrize(
    ("run", "source", "classes"),
    [
        (Run(Path("a"), "a"), "folder:b", ("cat", "dog")),
        (run_of("0", "1", trained_on="npz:a"), "folder:b", ("cat", "dog")),
        (run_of("cat", "dog"), "idx:b", ("0", "1")),
        (run_of("cat", "dog", "ant"), "folder:b", ("fox", "hen")),  # names of another network than this one
    ],
)
def test_without_names_places_are_paired(run, source, classes):
    split = split_of([0, 1])
    assert pair_classes(run, 2, source, classes, split) == (classes, split)


def test_digits_are_names_and_the_numbers_of_a_file_are_not():
    digits = tuple("0123456789")
    assert known_classes(run_of(*digits, trained_on="mnist")) == digits
    assert known_classes(run_of(*digits, trained_on="idx:mnist")) is None
    by_recipe = Run(Path("a"), "a", recipe={"data": {"source": "mnist"}}, facts={"data": {"classes": list(digits)}})
    assert known_classes(by_recipe) == digits


def test_models_that_are_measured_together_have_the_same_classes():
    animals, others = run_of("cat", "dog", title="a"), run_of("cat", "fox", title="b")
    check_same_classes([animals, run_of("0", "1", trained_on="npz:a"), animals])
    with pytest.raises(TorchcapsError, match=r"but a has cat, dog, and b has cat, fox; leave one of them out"):
        check_same_classes([animals, others])


def test_a_member_that_has_names_pairs_for_one_that_has_none():
    named = run_of("cat", "dog", *"01234567", title="b")
    with pytest.raises(TorchcapsError, match="tells apart cat, dog"):
        common_examples([Run(Path("a"), "a"), named], [network(10), network(10)], "mnist-sample")


def test_a_folder_whose_names_sort_differently(tmp_path):
    names = ("dog", "ant", "cat")  # as a table with a column a class may have them
    for value, name in enumerate(names):
        (tmp_path / name).mkdir()
        for number in range(5):
            write_grey(tmp_path / name / f"{number}.png", 100 * value)
    examples = choose_examples(run_of(*names), network(3), f"folder:{tmp_path}")
    assert examples.classes == names
    assert (examples.split.images[:, 0, 0, 0] // 100).tolist() == examples.split.labels.tolist()
    some = choose_examples(run_of(*names, "emu"), network(4), f"folder:{tmp_path}")
    assert some.classes == (*names, "emu")
    assert any("has pictures of 3 of the model's 4 classes" in remark for remark in some.remarks)


def write_grey(path: Path, value: int) -> None:
    from PIL import Image

    Image.fromarray(np.full((28, 28), value, np.uint8)).save(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluate", "cnn-mnist", "--data", "fashion-sample"],
        ["evaluate", "cnn-mnist", "cnn-fashion", "--data", "mnist-sample"],
        ["report", "cnn-mnist", "cnn-fashion", "--data", "mnist-sample"],
        ["robustness", "cnn-mnist", "cnn-fashion", "--data", "mnist-sample"],
    ],
)
def test_digits_and_clothes_are_kept_apart(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert "0, 1, 2" in error
    assert "T-shirt/top, Trouser" in error
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
