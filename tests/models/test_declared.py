"""What a config and a file of weights declare is checked before memory is taken."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import torchcaps
from torchcaps.errors import TorchcapsError
from torchcaps.models import CapsNet, ClassifierOutput, Model, SmallCNN, registry
from torchcaps.models.declared import MOST_PARAMETERS, weights_of

SMALL = dict(image_shape=(1, 8, 8), num_classes=3, channels=4, hidden=8)


@pytest.fixture
def saved(tmp_path):
    torchcaps.create_model("small-cnn", **SMALL).save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("capsnet", dict(conv_channels=100_000), "conv_channels must be a whole number from 1 to 65,536, got 100000"),
        ("capsnet", dict(conv_channels=True), "conv_channels must be .*, got True"),
        ("capsnet", dict(primary_dim=2.5), r"primary_dim must be .*, got 2\.5"),
        ("capsnet", dict(iterations=10**9), "iterations must be a whole number from 1 to 1,000; the paper uses 3, got"),
        ("capsnet", dict(routing={"name": "em", "iterations": 10**9}), "the routing 'em': iterations must be"),
        ("capsnet", dict(routing={"name": "k-means", "temperature": "hot"}), "temperature must be a number"),
        ("capsnet", dict(routing=float("nan")), "routing must be a text .* or a table, or a function, got nan"),
        ("capsnet", dict(reconstruction_scale=float("nan")), "reconstruction_scale must be .*, got nan"),
        ("capsnet", dict(decoder_hidden=[-4]), r"decoder_hidden must be .*, got \[-4\]"),
        ("capsnet", dict(stem=[4] * 100_000), "stem must be a list of widths"),
        ("capsnet", dict(leaky=0), "leaky must be true or false, got 0"),
        ("capsnet", dict(preset=["paper"]), "preset must be a text"),
        ("capsnet", dict(image_shape=[1, 28, float("inf")]), "image_shape must be"),
        ("capsnet", dict(conv_channels=60_000, primary_types=60_000), "would have .* parameters, and 1,000,000,000 is"),
        ("capsnet", dict(image_shape=(3, 60_000, 60_000)), "would have .* parameters"),
        ("capsnet-deep", dict(depth=10**6), "depth must be a whole number from 0 to 64"),
        ("matrix-capsules", dict(A=10**5), "A must be a whole number from 1 to 65,536"),
        ("matrix-capsules", dict(margin=2), "margin must be a number above 0 and at most 1"),
        ("small-cnn", dict(hidden=-3), "hidden must be a whole number from 1 to 1,000,000, got -3"),
        ("small-cnn", dict(dropout=1.5), "dropout must be a number from 0 to 1"),
    ],
)
def test_settings_out_of_range_take_no_time_and_no_memory(name, settings, words):
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(ValueError, match=words):
        torchcaps.create_model(name, **settings)
    assert time.process_time() - started < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_large_networks_that_can_be_are_not_refused():
    """224×224 pictures of 1,000 classes with weights that positions share; of ten classes without, too."""
    shared = dict(image_shape=(3, 224, 224), num_classes=1000, shared_weights="positions")
    counts = [
        sum(weight.numel() for weight in weights_of(CapsNet, settings).values())
        for settings in (shared, dict(image_shape=(3, 224, 224), num_classes=10))
    ]
    assert counts == [172_492_160, 603_293_600]
    assert max(counts) < MOST_PARAMETERS


def test_the_start_values_are_the_same_as_without_the_look():
    torch.manual_seed(3)
    one = SmallCNN(**SMALL).state_dict()
    torch.manual_seed(3)
    other = torchcaps.create_model("small-cnn", **SMALL).state_dict()
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_looking_does_not_import_a_compiler():
    program = """import sys, torchcaps
from torchcaps.models.registry import _MODELS
from torchcaps.models.declared import weights_of
for name in torchcaps.list_models(): weights_of(_MODELS[name], {})
print("torch._dynamo" in sys.modules)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden": 10**9}, "config.json does not describe a network .* hidden must be a whole number"),
        ({"hidden": True}, "hidden must be"),
        ({"hidden": 900_000}, r"head\.2\.\w+ is \[8(, \d+)?\] there and \[900000(, \d+)?\] in the network"),
        ({"image_shape": [1, 8]}, "image_shape must be"),
        ({"image_shape": "abc"}, "image_shape must be"),
        ({"num_classes": 4}, r"is \[3(, 8)?\] there and \[4(, 8)?\] in the network"),
        ({"multi_label": "no"}, "multi_label must be true or false"),
        ({"architecture": {"a": 1}}, "which is not known here"),
        ({"\\": 1}, "has no setting"),
    ],
)
def test_a_config_out_of_range(saved, change, words):
    config = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(TorchcapsError, match=words):
        torchcaps.from_pretrained(saved)


@pytest.mark.parametrize(
    "text", ["NaN", '{"architecture": NaN}', "[" * 100_000, '{"architecture": "\\ud800"}', "\udc00"]
)
def test_a_config_that_is_no_table(saved, text):
    (saved / "config.json").write_text(text, errors="surrogatepass")
    with pytest.raises(TorchcapsError, match=r"config\.json"):
        torchcaps.from_pretrained(saved)


def test_weights_of_another_type(saved):
    weights = load_file(saved / "model.safetensors")
    whole = {name: tensor.long() for name, tensor in weights.items()}
    save_file(whole, saved / "model.safetensors")
    with pytest.raises(TorchcapsError, match="is I64 there and float32 here"):
        torchcaps.from_pretrained(saved)
    half = {name: tensor.half() if tensor.is_floating_point() else tensor for name, tensor in weights.items()}
    save_file(half, saved / "model.safetensors")
    assert next(torchcaps.from_pretrained(saved).parameters()).dtype == torch.float32


def test_settings_can_be_replaced_and_weights_loaded_to_a_device(saved):
    assert torchcaps.from_pretrained(saved, dropout=0.25, map_location="cpu").settings["dropout"] == 0.25
    with pytest.raises(TorchcapsError, match="no setting 'drop_out'; did you mean 'dropout'"):
        torchcaps.from_pretrained(saved, drop_out=0.25)


def test_a_pickle_from_the_hub_is_refused(saved):
    with pytest.raises(TorchcapsError, match="is a pickle"):
        SmallCNN._load_as_pickle(None, "pytorch_model.bin", "cpu", True)


def test_a_model_of_ones_own_that_looks_at_its_numbers_is_built_all_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "_MODELS", dict(registry._MODELS))

    @torchcaps.register_model("looks")
    class Looks(Model):
        def __init__(self, num_classes: int = 2) -> None:
            super().__init__()
            self.settings = {"num_classes": num_classes}
            self.layer = nn.Linear(4, num_classes)
            self.scale = float(self.layer.weight.abs().max())

        def forward(self, images):
            logits = self.layer(images.flatten(1))
            return ClassifierOutput(logits, logits.softmax(1))

    torchcaps.create_model("looks", num_classes=3).save_pretrained(tmp_path)
    assert torchcaps.from_pretrained(tmp_path).settings == {"num_classes": 3}
    with pytest.raises(ValueError, match="num_classes must be a whole number, got 'three'"):
        torchcaps.create_model("looks", num_classes="three")
