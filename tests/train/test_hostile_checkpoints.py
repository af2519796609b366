"""A checkpoint with a value that no training wrote is refused, and everything stays as it was."""

from __future__ import annotations

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from torchcaps.errors import TorchcapsError
from torchcaps.eval import open_run
from torchcaps.eval.recipe_facts import recipe_facts
from training_runs import train_tiny


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train_tiny(tmp_path_factory.mktemp("hostile") / "run", "training.steps=2", "log.checkpoint_every=1")


@pytest.fixture
def run(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run", symlinks=True)


def bytes_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def resume(folder):
    train_tiny(folder, "training.steps=2", "log.checkpoint_every=1", resume=True)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("step", 10**18, "step must be a whole number from 0 to 1,000,000,000,000, got 1000000000000000000"),
        ("step", -1, "step must be a whole number from 0 to"),
        ("step", True, "step must be .*, got True"),
        ("step", 1, "do not name the same step"),
        ("step", None, "step must be .*, got None"),
        ("seconds", "long", r"seconds must be a number from 0 to 10,000,000,000, got 'long'"),
        ("seconds", -1.0, "seconds must be a number"),
        ("seconds", [], "seconds must be a number"),
        ("loader", 3, "loader must be a table, got 3"),
        ("loader", {"step": "2"}, "do not name the same step"),
        ("loader", {"step": 2}, "the data has changed"),
        ("reached_accuracy", 1, "reached_accuracy must be true or false, got 1"),
        ("seed", -3, "seed must be a whole number from 0"),
        ("format", [1], r"has the format \[1\], this version reads 1"),
    ],
)
def test_values(run, key, value, words):
    file = run / "checkpoints" / "last" / "training.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    before = bytes_of(run)
    with pytest.raises(TorchcapsError, match=words):
        resume(run)
    assert bytes_of(run) == before


@pytest.mark.parametrize("key", ["step", "seconds", "loader", "seed"])
def test_a_missing_value(run, key):
    file = run / "checkpoints" / "last" / "training.json"
    values = json.loads(file.read_text())
    del values[key]
    file.write_text(json.dumps(values))
    with pytest.raises(TorchcapsError, match=rf"training\.json has no {key}\).* go on from step-00000001"):
        resume(run)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("meter", lambda tensor: tensor[:3], r"meter is \[3\] there and \[6\] in the network"),
        ("meter", lambda tensor: tensor.float(), "meter is F32 there and float64 here"),
        ("meter", lambda tensor: -tensor - 1, "meter is -.* somewhere, not 0 or more"),
        ("optimizer/conv.bias/exp_avg", lambda tensor: tensor * torch.nan, "numbers that are not finite"),
        ("optimizer/conv.bias/exp_avg_sq", lambda tensor: tensor - 1, "exp_avg_sq is -.* somewhere"),
        ("optimizer/conv.bias/step", lambda tensor: tensor + 5, "step is 7, not 2, the number of steps"),
        ("optimizer/conv.bias/step", None, "it is without optimizer/conv.bias/step"),
    ],
)
def test_tensors(run, name, change, words):
    file = run / "checkpoints" / "last" / "training.safetensors"
    tensors = load_file(file)
    tensor = tensors.pop(name)
    if change is not None:
        tensors[name] = change(tensor)
    save_file(tensors, file)
    before = bytes_of(run)
    with pytest.raises(TorchcapsError, match=words):
        resume(run)
    assert bytes_of(run) == before


def test_weights_that_are_no_numbers(run):
    file = run / "checkpoints" / "last" / "model.safetensors"
    weights = load_file(file)
    weights["conv.bias"][0] = torch.inf
    save_file(weights, file)
    with pytest.raises(TorchcapsError, match=r"conv\.bias in model\.safetensors has numbers that are not finite"):
        resume(run)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("size = 1000000000", r"data\.size must be a whole number from 0 to 4,096"),
        ('size = "28"', r"data\.size must be"),
        ('validation = "some"', r"data\.validation must be a number from 0 to below 1, got 'some'"),
        ("validation = [0.1]", r"data\.validation must be"),
        ("fold = inf", r"data\.fold must be a whole number"),
        ("augment = 3", "augmentations are a list"),
        ("augment = [3]", "an augmentation is a table"),
        ('augment = [{name = "crop", size = 1000000}]', "size must be a whole number from 1 to 4,096"),
        ('augment = [{name = ["crop"]}]', "no augmentation is named"),
    ],
)
def test_facts_of_a_recipe(run, line, words):
    (run / "recipe.toml").write_text(f'[data]\nsource = "mnist-sample"\n{line}\n')
    with pytest.raises(TorchcapsError, match=words):
        recipe_facts(open_run(run))


def test_facts_of_the_machine(run):
    (run / "environment.json").write_text('{"seed": true, "data": {"classes": [1, 2], "any_number_of_classes": 1}}')
    opened = open_run(run)
    assert (opened.seed, opened.class_names, opened.any_number_of_classes) == (None, None, False)
    (run / "environment.json").write_text('{"data": {"training_pictures": "many", "classes": 7}}')
    resume(run)
