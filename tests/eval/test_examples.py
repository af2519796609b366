"""Which examples a command takes, and what it says about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import torchcaps
from published_files import picture_bytes, write_picture_folder
from torchcaps.data import MultiMNIST, load, sample_digits, train_and_validation
from torchcaps.errors import TorchcapsError
from torchcaps.eval import choose_examples, load_model, open_run
from torchcaps.eval.examples import Examples
from torchcaps.eval.pictures import class_names, read_pictures, things_in_a_picture
from torchcaps.eval.recipe_facts import DataChoice, parse_data_name


def test_the_recipe_decides(small_run):
    examples = choose_examples(open_run(small_run), load_model(small_run))
    assert (examples.name, len(examples), examples.classes) == ("mnist-sample", 500, tuple("0123456789"))
    assert any("small sample" in remark for remark in examples.remarks)
    torch.testing.assert_close(examples.images(torch.tensor([3])), sample_digits("test").images[3:4] / 255)


def test_the_validation_split_is_the_one_of_training(small_run):
    examples = choose_examples(open_run(small_run), load_model(small_run), split_name="validation")
    expected = train_and_validation(load("mnist-sample"), 0.1)[1]
    assert (examples.split.images == expected.images).all()
    assert not any("held out" in remark for remark in examples.remarks)
    run = open_run(small_run)
    other_fold = replace(run, recipe={**run.recipe, "data": {**run.recipe["data"], "fold": 1}})
    examples = choose_examples(other_fold, load_model(small_run), split_name="validation")
    expected = train_and_validation(load("mnist-sample"), 0.1, fold=1)[1]
    assert (examples.split.images == expected.images).all()
    in_a_row = replace(run, recipe={**run.recipe, "data": {**run.recipe["data"], "validation_consecutive": True}})
    examples = choose_examples(in_a_row, load_model(small_run), split_name="validation")
    assert (examples.split.images == sample_digits("train").images[:100]).all()
    with pytest.raises(TorchcapsError, match="no split 'middle'; it has train, test"):
        choose_examples(open_run(small_run), load_model(small_run), split_name="middle")


def test_without_a_recipe_the_embedded_digits_are_used_and_it_is_said(tmp_path):
    model = torchcaps.create_model("small-cnn", channels=4)
    model.save_pretrained(tmp_path)
    examples = choose_examples(open_run(tmp_path), model)
    assert examples.name == "mnist-sample"
    assert "no recipe says" in examples.remarks[0]
    held_out = choose_examples(open_run(tmp_path), model, split_name="validation")
    assert any("may have been trained on" in remark for remark in held_out.remarks)


def test_pairs(pairs_run):
    run, model = open_run(pairs_run), load_model(pairs_run)
    examples = choose_examples(run, model, pairs=30)
    assert (examples.name, len(examples)) == ("multimnist:paper:mnist-sample", 30)
    assert "30 of 500,000 pairs, evenly spaced" in examples.remarks
    positions = torch.tensor([4, 2])
    singles = examples.singles(positions)
    torch.testing.assert_close(examples.images(positions), singles.sum(1).clamp(max=1), atol=1e-6, rtol=0)
    assert examples.labels(positions).shape == (2, 2)
    assert 0 in examples.labels(examples.of_class(0)[:1])
    assert things_in_a_picture(run) == 2


def test_an_example_knows_its_file_and_a_pair_both(tmp_path):
    write_picture_folder(tmp_path, {"a": 10, "b": 10})
    source = load(f"folder:{tmp_path}")
    single = Examples(source.name, "test", source.classes, source.test)
    assert [single.file(position) for position in range(4)] == list(source.test.files)
    multi = MultiMNIST(source.test)
    pairs = Examples("pairs", "test", source.classes, source.test, pairs=multi, pair_indices=torch.tensor([5, 3999]))
    for position in range(2):
        first, second = multi.pictures(pairs.pair_indices)[position].tolist()
        assert pairs.file(position) == f"{source.test.files[first]} + {source.test.files[second]}"
    assert Examples("digits", "test", tuple("0123456789"), sample_digits("test")).file(3) is None


def test_classes_come_in_turn_until_there_are_enough(small_run, pairs_run):
    digits = choose_examples(open_run(small_run), load_model(small_run))
    assert digits.labels(digits.classes_in_turn(23)).tolist() == [*range(10), *range(10), 0, 1, 2]
    assert digits.classes_in_turn(10).tolist() == digits.one_of_each_class().tolist()
    assert sorted(digits.classes_in_turn(1000).tolist()) == list(range(500))
    pairs = choose_examples(open_run(pairs_run), load_model(pairs_run), pairs=300)
    assert len(set(pairs.classes_in_turn(40).tolist())) == 40


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mnist", DataChoice("mnist")),
        ("folder:a/b:c", DataChoice("folder:a/b:c")),
        ("multimnist", DataChoice("mnist", "paper")),
        ("multimnist:official:kmnist", DataChoice("kmnist", "official")),
    ],
)
def test_names_of_data(name, expected):
    assert parse_data_name(name) == expected
    assert parse_data_name(str(expected)) == expected


def test_unknown_variant_and_other_classes(small_run, tmp_path):
    with pytest.raises(TorchcapsError, match="multimnist:paper and multimnist:official"):
        parse_data_name("multimnist:big")
    folder = write_picture_folder(tmp_path / "set", {"cat": 5, "dog": 5})
    model = load_model(small_run)
    with pytest.raises(TorchcapsError, match=r"tells apart 0, 1, .*, but the classes of folder:.* are cat, dog"):
        choose_examples(open_run(small_run), model, f"folder:{folder}")
    model.save_pretrained(tmp_path / "nameless")
    examples = choose_examples(open_run(tmp_path / "nameless"), model, f"folder:{folder}")
    assert examples.split.images.shape[1:] == (1, 28, 28)  # read in the form that the model takes
    with pytest.raises(TorchcapsError, match=r"10 classes apart, but folder:.* has 2"):
        examples.evaluate(model)


def test_own_pictures_are_read_and_inverted_where_the_paper_is_bright(small_run, tmp_path):
    digit = sample_digits("test").images[0, 0].numpy()
    (tmp_path / "ink.png").write_bytes(picture_bytes(255 - digit))
    (tmp_path / "chalk.png").write_bytes(picture_bytes(digit))
    run, model = open_run(small_run), load_model(small_run)
    read = read_pictures([tmp_path], run, model)
    assert [path.name for path in read.paths] == ["chalk.png", "ink.png"]
    assert read.inverted == (False, True)
    torch.testing.assert_close(read.images[0], read.images[1])
    torch.testing.assert_close(read.images[0, 0], torch.from_numpy(digit) / 255)
    assert read_pictures([tmp_path], run, model, "yes").inverted == (True, True)
    assert read_pictures([tmp_path], run, model, "no").inverted == (False, False)


def test_other_sizes_and_colours_are_brought_to_the_models_form(small_run, tmp_path):
    (tmp_path / "wide.jpg").write_bytes(picture_bytes(np.zeros((30, 90, 3), np.uint8), "JPEG"))
    read = read_pictures([tmp_path / "wide.jpg"], open_run(small_run), load_model(small_run))
    assert read.images.shape == (1, 1, 28, 28)


def test_pictures_that_cannot_be_used(small_run, tmp_path):
    run, model = open_run(small_run), load_model(small_run)
    with pytest.raises(TorchcapsError, match="there is no picture or folder"):
        read_pictures([tmp_path / "none.png"], run, model)
    with pytest.raises(TorchcapsError, match="holds no pictures"):
        read_pictures([tmp_path], run, model)
    (tmp_path / "broken.png").write_bytes(b"not a picture")
    with pytest.raises(
        TorchcapsError, match=r"none of 1 pictures could be read\n.*broken\.png: not a picture of a kind"
    ):
        read_pictures([tmp_path / "broken.png"], run, model)
    with pytest.raises(TorchcapsError, match="auto, yes or no, not 'maybe'"):
        read_pictures([tmp_path], run, model, "maybe")


def test_class_names_fall_back_to_numbers(small_run, tmp_path):
    model = load_model(small_run)
    model.save_pretrained(tmp_path)
    assert class_names(open_run(tmp_path), model) == tuple("0123456789")
    assert class_names(open_run(small_run), torchcaps.create_model("small-cnn", num_classes=3)) == ("0", "1", "2")


def test_the_pairs_that_are_measured_are_those_that_are_shown():
    split = load("mnist-sample").test
    pairs = MultiMNIST(split, pairs_per_digit=10)
    indices = torch.arange(0, 5000, 250)
    examples = Examples("pairs", "test", tuple("0123456789"), split, (), pairs, indices)
    model = torchcaps.create_model("capsnet", image_shape=(1, 36, 36), conv_channels=4, primary_types=1, decoder="none")
    assert torch.equal(examples.evaluate(model).labels, examples.labels(torch.arange(20)))
