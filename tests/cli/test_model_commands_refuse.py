"""Commands that use a finished model when something is wrong: bad input, a missing library, a wrong call."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tomllib
from pathlib import Path

import pytest
import torch

import torchcaps
from torchcaps.cli.app import main
from torchcaps.cli.doctor import EXTRAS


def wrong_architecture(place: Path) -> list[str]:
    folder = shutil.copytree(place / "runs" / "demo-seed0" / "final", place / "other")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "conv_channels": 32}))
    return ["evaluate", "other"]


def truncated(place: Path) -> list[str]:
    folder = shutil.copytree(place / "runs" / "demo-seed0" / "final", place / "cut")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    return ["predict", "cut", "pictures"]


def other_size(place: Path) -> list[str]:
    return ["evaluate", "runs/demo-seed0", "--data", "multimnist:paper:mnist-sample"]


def empty_folder(place: Path) -> list[str]:
    (place / "nothing").mkdir()
    return ["predict", "runs/demo-seed0", "nothing"]


def undecodable(place: Path) -> list[str]:
    (place / "text.png").write_text("hello")
    return ["reconstruct", "runs/demo-seed0", "text.png"]


def unwritable(place: Path) -> list[str]:
    (place / "file").write_text("")
    return ["report", "runs/demo-seed0", "--out", "file/report.html"]


def figures_to_nowhere(place: Path) -> list[str]:
    (place / "file").write_text("")
    return ["report", "runs/demo-seed0", "--figures", "file"]


def drawn_to_nowhere(place: Path) -> list[str]:
    (place / "file").write_text("")
    return ["predict", "runs/demo-seed0", "pictures", "--reconstruct", "file"]


def onnx_to_nowhere(place: Path) -> list[str]:
    (place / "file").write_text("")
    return ["export", "runs/demo-seed0", "--out", "file/model.onnx"]


def blind_model(place: Path) -> list[str]:
    torchcaps.create_model("small-cnn", channels=4).save_pretrained(place / "cnn")
    return ["tweak", "cnn", "--class", "5"]


BAD_INPUT = [
    (lambda place: ["evaluate", "runs/none"], "there is no folder runs/none"),
    (lambda place: ["evaluate", "runs/demo-sed0"], "there is no folder runs/demo-sed0; did you mean runs/demo-seed0?"),
    (lambda place: ["predict", "capsnet-minst", "pictures"], "did you mean capsnet-mnist?"),
    (lambda place: ["models", "info", "capsnett"], "there is no network 'capsnett'; choose from baseline-cnn, "),
    (lambda place: ["models", "list", "vit*"], "no network matches 'vit*'; there are"),
    (lambda place: ["tweak", "runs/demo-seed0", "--class", "11"], "there is no class '11'; the model has 0, 1"),
    (lambda place: ["evaluate", "runs/demo-seed0", "--data", "mnits"], "did you mean 'mnist'"),
    (lambda place: ["evaluate", "runs/demo-seed0", "--split", "middle"], "no split 'middle'"),
    (lambda place: ["tweak", "runs/demo-seed0", "--class", "1", "--out", "runs"], "is a folder; name a file in it"),
    (lambda place: ["evaluate", "runs/demo-seed0", "runs/demo-seed0/final"], "runs/demo-seed0/final is given twice"),
    (lambda place: ["evaluate", "runs/demo-seed0", "runs/pairs"], "runs/pairs/final has pictures of 1×36×36"),
    (wrong_architecture, "belong to another network"),
    (truncated, "damaged or cut short"),
    (other_size, "takes pictures of 1×28×28"),
    (empty_folder, "holds no pictures"),
    (undecodable, "none of 1 pictures could be read"),
    (unwritable, "file/report.html cannot be written: file is a file, not a folder; choose another place with --out"),
    (figures_to_nowhere, "choose another place with --figures"),
    (drawn_to_nowhere, "choose another place with --reconstruct"),
    (onnx_to_nowhere, "cannot be written"),
    (blind_model, "has no capsules to draw from"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("arrange", "message"), BAD_INPUT, ids=[message[:30] for _, message in BAD_INPUT])
def test_bad_input_is_one_paragraph(arrange, message, place, capsys):
    assert main(arrange(place)) == 1
    captured = capsys.readouterr()
    assert captured.err.count("Error: ") == 1
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert "\n\n" not in captured.err.strip()


def test_a_report_that_cannot_be_written_is_not_made_first(place, capsys):
    assert main(["report", "runs/demo-seed0", "--out", "pictures"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "pictures is a folder; name a file in it with --out" in captured.err


def hide(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    """Make a library look as if it were not installed."""
    find_spec = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *more: None if name == module else find_spec(name))


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("matplotlib", ["report", "runs/demo-seed0"], "torchcaps[figures]"),
        ("matplotlib", ["tweak", "runs/demo-seed0", "--class", "3"], "torchcaps[figures]"),
        ("PIL.Image", ["predict", "runs/demo-seed0", "pictures"], "torchcaps[images]"),
        ("onnxscript", ["export", "runs/demo-seed0"], "torchcaps[onnx]"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(module, arguments, extra, place, capsys, monkeypatch):
    hide(monkeypatch, module)
    assert main(arguments) == 1
    assert f'pip install "{extra}"' in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["tweak", "runs/demo-seed0"], ["export", "runs/demo-seed0", "--format", "gif"], ["predict"]]
)
def test_wrong_usage_exits_with_two(arguments, place):
    assert main(arguments) == 2


def test_doctor_looks_for_every_extra():
    pyproject = Path(__file__).resolve().parents[2] / "pyproject.toml"
    extras = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(extras) - {"all", "triton"}  # Triton has a line of its own


def test_doctor_names_what_is_missing(place, capsys, monkeypatch):
    hide(monkeypatch, "tensorboard")
    assert main(["doctor", "--json"]) == 0
    findings = {finding["subject"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert findings["tensorboard"]["state"] == "missing"
    assert 'pip install "torchcaps[tensorboard]"' in findings["tensorboard"]["text"]
    assert findings["figures"]["state"] == "ok"
    assert torch.__version__ in findings["PyTorch"]["text"]
    assert "mnist-sample" in findings["data here"]["text"]
    assert main(["doctor"]) == 0
    assert 'pip install "torchcaps[tensorboard]"' in capsys.readouterr().out


@pytest.mark.parametrize("command", ["evaluate", "figures 5 --model", "reconstruct", "robustness", "tweak --class 5"])
def test_pictures_of_another_size_are_one_paragraph(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    torchcaps.create_model("capsnet", image_shape=(1, 36, 36), conv_channels=4, primary_types=1).save_pretrained(
        "pairs"
    )
    assert main([*command.split(), "pairs", "--data", "mnist-sample"]) == 1
    assert "the model takes pictures of 1×36×36" in capsys.readouterr().err
