"""Shipped weights: half the bytes, the same answers as measured, found by name, offline."""

from __future__ import annotations

import json
import os
import shutil

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

import torchcaps
from small_runs import shared_run
from torchcaps.cli.app import main
from torchcaps.data import MultiMNIST, load, sample_digits
from torchcaps.errors import TorchcapsError
from torchcaps.eval import open_run
from torchcaps.models.shipped import weights_folder
from torchcaps.train.objective import is_wrong
from torchcaps.train.packing import pack_weights
from torchcaps.train.studies import StudyResult


@pytest.fixture
def packed(tmp_path, tmp_path_factory, monkeypatch):
    run = shared_run(tmp_path_factory.getbasetemp(), "small")
    records = tmp_path / "records" / "cell"
    for seed, errors in enumerate((50, 60)):
        StudyResult("cell", seed, "test", "mnist-sample", errors, 500, "last", "fp32", 1, 1, 1.0, 1.0).write(
            records / f"seed{seed}"
        )
    facts = pack_weights(run, "capsnet-tiny", out=tmp_path / "weights", records=records)
    monkeypatch.setenv("TORCHCAPS_WEIGHTS", os.pathsep.join((str(tmp_path / "nothing"), str(tmp_path / "weights"))))
    monkeypatch.chdir(tmp_path)
    return facts


def test_weights_by_name(packed, tmp_path, tmp_path_factory):
    assert "capsnet-tiny" in torchcaps.list_pretrained()
    assert torchcaps.list_pretrained("capsnet-t*") == ["capsnet-tiny"]
    model = torchcaps.from_pretrained("capsnet-tiny")
    original = torchcaps.from_pretrained(shared_run(tmp_path_factory.getbasetemp(), "small") / "final")
    file = tmp_path / "weights" / "capsnet-tiny" / "model.safetensors"
    assert {tensor.dtype for tensor in load_file(file).values()} == {torch.float16}
    for name, tensor in original.state_dict().items():
        assert model.state_dict()[name].dtype == torch.float32
        assert torch.equal(model.state_dict()[name], tensor.half().float())
    with pytest.raises(TorchcapsError, match=r"nor shipped with the package \(.*capsnet-tiny"):
        torchcaps.from_pretrained("capsnet-large")


def test_the_card_says_what_was_measured(packed, tmp_path, capsys):
    assert main(["evaluate", "capsnet-tiny", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    card = json.loads((tmp_path / "weights" / "capsnet-tiny" / "card.json").read_text())
    assert card["errors_stored"] == measured["errors"]  # to the last picture
    assert card["examples"] == measured["examples"] == 500
    assert abs(card["errors_full"] - card["errors_stored"]) <= card["changed"] <= 5
    assert len(open_run("capsnet-tiny").training_lines) == 40  # a report can show how it was trained
    text = (tmp_path / "weights" / "capsnet-tiny" / "README.md").read_text()
    assert str(packed.stored) in text
    assert "11.000 ± 1.414 (2 seeds" in text
    for word in ("licence", "seed 0", "recipe small", "small sample"):
        assert word in text
    assert "command" not in (tmp_path / "weights" / "capsnet-tiny" / "environment.json").read_text()


@pytest.mark.parametrize(
    "arguments",
    [
        ["models", "list"],
        ["models", "info", "capsnet-tiny"],
        ["reconstruct", "capsnet-tiny", "--count", "2", "--out", "out.png"],
        ["tweak", "capsnet-tiny", "--class", "5", "--out", "grid.png"],
        ["export", "capsnet-tiny", "--format", "safetensors", "--out", "plain"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_commands_take_the_name(packed, arguments, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert main(arguments) == 0, capsys.readouterr().err
    assert capsys.readouterr().out.strip()


def test_what_cannot_be_packed(packed, tmp_path, tmp_path_factory):
    run = shared_run(tmp_path_factory.getbasetemp(), "small")
    with pytest.raises(TorchcapsError, match="exists already"):
        pack_weights(run, "capsnet-tiny", out=tmp_path / "weights")
    with pytest.raises(TorchcapsError, match="is no name for weights"):
        pack_weights(run, "owner/name", out=tmp_path / "weights")
    with pytest.raises(TorchcapsError, match="holds no seed"):
        pack_weights(run, "other", out=tmp_path / "weights", records=tmp_path)
    large = shutil.copytree(run, tmp_path / "large")
    model = torchcaps.from_pretrained(large / "final")
    with torch.no_grad():
        model.conv.weight[0, 0, 0, 0] = 1e6
    model.save_pretrained(large / "final")
    with pytest.raises(TorchcapsError, match=r"conv\.weight holds numbers that 16 bits cannot"):
        pack_weights(large, "large", out=tmp_path / "weights")
    assert {path.name for path in (tmp_path / "weights").iterdir()} == {"capsnet-tiny"}  # nothing half-packed is left


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"error_percent": "low"}', "[" * 100_000])
def test_a_damaged_card_is_said_and_hides_nothing_else(packed, tmp_path, capsys, damage):
    (tmp_path / "weights" / "capsnet-tiny" / "card.json").write_text(damage)
    assert main(["models", "list", "capsnet-*"]) == 0
    printed = capsys.readouterr().out
    assert "no card that can be read" in " ".join(printed.split())
    assert "mnist-best" in printed  # the card of another


@pytest.mark.parametrize("name", sorted(path.parent.name for path in weights_folder().glob("*/config.json")))
def test_every_shipped_network_loads_and_has_a_card(name):
    model = torchcaps.from_pretrained(name)
    card = json.loads((weights_folder() / name / "card.json").read_text())
    assert sum(parameter.numel() for parameter in model.parameters()) == card["parameters"]
    assert (weights_folder() / name / "README.md").is_file()


def test_shipped_weights_stay_small():
    assert sum(file.stat().st_size for file in weights_folder().rglob("*") if file.is_file()) <= 45_000_000


def test_the_shipped_network_knows_the_embedded_digits():
    digits = sample_digits("test")
    model = torchcaps.from_pretrained("capsnet-mnist").eval()
    with torch.no_grad():
        named = model(digits.images.float() / 255).lengths.argmax(1)
    assert int((named != digits.labels).sum()) <= 5  # the card: 0.35 %, of which these 500 are a part; 2 on a CPU


def test_the_shipped_networks_know_the_embedded_clothes():
    clothes = load("fashion-sample").test
    counts = {"capsnet-fashion": 36, "cnn-fashion": 26}  # on a CPU; the cards say 6.2 and 5.6 % of all 10,000
    for name, wrong in counts.items():
        model = torchcaps.from_pretrained(name).eval()
        with torch.no_grad():
            named = model(clothes.images.float() / 255).scores.argmax(1)
        assert abs(int((named != clothes.labels).sum()) - wrong) <= 2  # another CPU may round a close call otherwise


def test_the_shipped_network_tells_overlapping_digits_apart():
    pairs = MultiMNIST(sample_digits("test"), "paper")
    made = pairs.pairs(torch.arange(0, len(pairs), len(pairs) // 100)[:100])
    model = torchcaps.from_pretrained("capsnet-multimnist").eval()
    with torch.no_grad():
        scores = model(made.images.float() / 255).scores
    assert int(is_wrong(scores, made.labels).sum()) <= 10  # the card: 3.3 %


@pytest.mark.parametrize("command", [["models", "pack"], ["export"]])
def test_a_full_disk_is_said_and_leaves_no_half(command, tmp_path, tmp_path_factory, monkeypatch, capsys):
    def full(*arguments: object, **options: object) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    run = str(shared_run(tmp_path_factory.getbasetemp(), "small"))
    monkeypatch.setattr("huggingface_hub.PyTorchModelHubMixin._save_pretrained", full)
    more = ["--format", "safetensors"] if command == ["export"] else ["capsnet-tiny"]
    assert main([*command, run, *more, "--out", str(tmp_path / "out")]) == 1
    assert "cannot be written: the disk is full; choose another place with --out" in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []
