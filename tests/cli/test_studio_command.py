"""``torchcaps studio``: its examples run, and what it does without a model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import torchcaps
from small_runs import shared_run
from torchcaps.cli.app import main

SHIPPED = [(name, "capsnet") for name in ("capsnet-mnist", "capsnet-multimnist", "capsnet-fashion")]


@pytest.fixture
def served(monkeypatch) -> list[dict[str, object]]:
    """What the server would have been started with."""
    calls: list[dict[str, object]] = []

    def serve(catalogue, host, port, browser, say):
        models = [(facts.id, facts.kind) for facts in catalogue.facts()]
        calls.append({"models": models, "host": host, "port": port, "browser": browser})

    monkeypatch.setattr("torchcaps.studio.server.serve", serve)
    return calls


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A working folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return tmp_path


def examples_of(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    assert main([*arguments, "--help"]) == 0
    printed = capsys.readouterr().out.split("Examples")[1]
    return [example.split() for example in re.findall(r"torchcaps (studio[^│\n]*)", printed)]


def test_every_example_runs(home, tmp_path_factory, served, capsys):
    runs = home / "runs"
    runs.mkdir()
    (runs / "demo-seed0").symlink_to(shared_run(tmp_path_factory.getbasetemp(), "small"))
    torchcaps.create_model("small-cnn", channels=4, hidden=16).save_pretrained(runs / "cnn")
    examples = examples_of(["studio"], capsys)
    assert len(examples) == 4
    for example in examples:
        few = ["--examples", "2"] if "export" in example else []  # the last one counts
        assert main([*example, *few]) == 0, example
    assert [call["models"] for call in served] == [
        [*SHIPPED, ("cnn-mnist", "cnn"), ("cnn-fashion", "cnn")],
        [("demo-seed0", "capsnet"), ("cnn-mnist", "cnn")],
        [("demo-seed0", "capsnet"), ("cnn", "cnn")],
    ]
    assert served[2]["port"] == 9000
    assert served[2]["browser"] is False
    assert (home / "site" / "data" / "models.json").is_file()
    for example in examples_of(["studio", "export"], capsys):
        assert main([*example, "--examples", "2"]) == 0, example
    printed = capsys.readouterr().out
    assert "python -m http.server --directory site" in printed


def test_an_export_to_nowhere_names_no_option(home, capsys):
    (home / "file").touch()
    assert main(["studio", "export", "file/site", "capsnet-mnist", "--no-compare", "--examples", "2"]) == 1
    assert capsys.readouterr().err.endswith("choose another place\n")


def test_shipped_weights_come_first(home, served):
    assert main(["studio", "--no-compare"]) == 0
    assert served[0]["models"] == SHIPPED


def test_each_network_is_compared_with_the_cnn_of_its_own_classes(home, served):
    assert main(["studio", "capsnet-fashion"]) == 0
    assert served[0]["models"] == [("capsnet-fashion", "capsnet"), ("cnn-fashion", "cnn")]
    assert main(["studio", "capsnet-multimnist"]) == 0
    assert served[1]["models"] == [("capsnet-multimnist", "capsnet")]  # pairs of 36×36: none fits
    assert main(["studio", "capsnet-fashion", "cnn-mnist"]) == 0
    assert served[2]["models"] == [("capsnet-fashion", "capsnet"), ("cnn-mnist", "cnn")]  # one was named


def test_without_the_shipped_cnn_the_studio_opens_all_the_same(home, served, tmp_path_factory, monkeypatch):
    run = str(shared_run(tmp_path_factory.getbasetemp(), "small"))
    monkeypatch.setattr("torchcaps.models.list_pretrained", lambda pattern="*": [])
    assert main(["studio", run]) == 0
    assert [kind for _, kind in served[0]["models"]] == ["capsnet"]


def test_another_address_is_warned_about(home, served, capsys, tmp_path_factory):
    run = str(shared_run(tmp_path_factory.getbasetemp(), "small"))
    assert main(["studio", run, "--no-compare", "--host", "0.0.0.0"]) == 0
    assert "everybody in the network can open the studio" in " ".join(capsys.readouterr().err.split())
    assert main(["studio", run, "--no-compare"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", [["studio", "nowhere"], ["studio", "export", "site", "nowhere"]])
def test_an_unknown_model_is_an_error_in_words(home, arguments, capsys):
    assert main(arguments) == 1
    assert "there is no folder nowhere" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "message"), [("mnits", "did you mean 'mnist'?"), ("folder:nowhere", "there is no nowhere")]
)
def test_data_that_is_not_there_is_an_error(data, message, home, served, capsys):
    assert main(["studio", "--data", data]) == 1
    assert message in capsys.readouterr().err
    assert not served


def test_data_that_does_not_fit_is_remarked(home, served, capsys):
    torchcaps.create_model("small-cnn", image_shape=(3, 32, 32), num_classes=4, channels=4, hidden=8).save_pretrained(
        "colour"
    )
    assert main(["studio", "colour"]) == 0
    assert "no test pictures for colour" in capsys.readouterr().err
