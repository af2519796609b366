"""Commands that use a finished model: every example of their help runs and gives what it says."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from typer.main import get_command

from torchcaps.cli import predict
from torchcaps.cli.app import app, main
from torchcaps.data import sample_digits
from torchcaps.eval import evaluate, load_model, open_run
from torchcaps.eval.pictures import read_pictures

COMMANDS = (
    "evaluate",
    "robustness",
    "predict",
    "reconstruct",
    "tweak",
    "report",
    "export",
    "models list",
    "models pack",
    "figures",
    "models info",
    "doctor",
)


def find_command(path: str):
    command = get_command(app)
    for name in path.split():
        command = command.commands[name]
    return command


def examples_of(path: str) -> list[str]:
    text = inspect.cleandoc(find_command(path).help)
    return [line.strip() for line in text.splitlines() if re.match(r"\s+torchcaps ", line)]


EXAMPLES = [example for command in COMMANDS for example in examples_of(command)]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_of_this_command(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    assert examples_of(command)
    assert all(example.startswith(f"torchcaps {command}") for example in examples_of(command))
    assert main([*command.split(), "--help"]) == 0
    output = capsys.readouterr().out
    assert all(example in output for example in examples_of(command))  # as it is typed: *cnn* would be set in italics
    assert "......" not in output


# The exporter to ONNX warns about its own internals, which a user of the model cannot change.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_runs(example, place, capsys):
    arguments = shlex.split(example)[1:]
    assert main(arguments) == 0, capsys.readouterr().err
    output = capsys.readouterr().out
    assert output.strip()
    if "--json" in arguments:
        json.loads(output)
    for option in ("--out", "--figures", "--reconstruct"):
        if option in arguments:
            written = Path(arguments[arguments.index(option) + 1])
            assert written.is_file() or any(written.iterdir())
    assert not [path for path in place.rglob(".*") if path.is_file()]  # nothing half-written is left


def test_evaluate_says_what_the_library_says(place, capsys):
    assert main(["evaluate", "runs/demo-seed0", "--json"]) == 0
    captured = capsys.readouterr()
    facts = json.loads(captured.out)
    expected = evaluate(load_model("runs/demo-seed0"), sample_digits("test"))
    assert (facts["errors"], facts["examples"], facts["split"]) == (expected.error.count, 500, "test")
    assert facts["expected_calibration_error"] == pytest.approx(expected.calibration.expected_error)
    assert "small sample" in captured.err
    assert main(["evaluate", "runs/demo-seed0"]) == 0
    assert str(expected.error) in capsys.readouterr().out


def test_several_models_are_evaluated_as_one(place, capsys):
    models = ["runs/demo-seed0", "runs/demo-seed1"]
    assert main(["evaluate", *models, "--json"]) == 0
    captured = capsys.readouterr()
    facts = json.loads(captured.out)
    split = sample_digits("test")
    with torch.no_grad():
        total = sum(load_model(model)(split.images / 255).capsules.norm(dim=-1) for model in models)
    assert facts["errors"] == int((total.argmax(dim=1) != split.labels).sum())
    assert (facts["model"], facts["reconstruction_error"]) == ("ensemble of 2", None)
    assert [member["model"] for member in facts["members"]] == [f"{model}/final" for model in models]
    single = [evaluate(load_model(model), split).error for model in models]
    assert [member["errors"] for member in facts["members"]] == [error.count for error in single]
    assert "an ensemble has no decoder" in captured.err
    assert main(["evaluate", *models]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ensemble of 2 on mnist-sample, test: 500 examples"
    assert lines[1:3] == [f"member {model}/final: {error}" for model, error in zip(models, single, strict=True)]


def test_a_checkpoint_and_a_final_model_are_models_too(place, capsys):
    errors = []
    for part in ("", "/final", "/checkpoints/step-00000040"):
        assert main(["evaluate", f"runs/demo-seed0{part}", "--json"]) == 0
        errors.append(json.loads(capsys.readouterr().out)["errors"])
    assert len(set(errors)) == 1


@pytest.fixture
def any_length_counts(monkeypatch):
    """The capsules of networks that were trained for a few steps are short."""
    monkeypatch.setattr("torchcaps.eval.pictures.PRESENCE_THRESHOLD", 0.0)


@pytest.mark.usefixtures("any_length_counts")
def test_predict_gives_every_length(place, capsys):
    assert main(["predict", "runs/demo-seed0", "pictures", "--json", "--reconstruct", "drawn"]) == 0
    facts = json.loads(capsys.readouterr().out)
    for record in facts["predictions"]:
        assert len(record["lengths"]) == 10
        assert record["classes"] == [max(record["lengths"], key=record["lengths"].get)]
        with Image.open(record["reconstruction"]) as drawn:
            assert drawn.size == (28, 28)
    assert main(["predict", "runs/demo-seed0", "pictures/five.png", "--top", "2"]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    lengths = facts["predictions"][0]["lengths"]
    best = sorted(lengths, key=lengths.get, reverse=True)[:2]
    assert row[0] == "five.png"
    assert [word.rstrip(",") for word in row[2:]] == [part for name in best for part in (name, f"{lengths[name]:.2f}")]


@pytest.mark.parametrize(("width", "shown"), [("80", 5), ("120", 10)])
def test_predict_cuts_no_class_that_is_a_word(width, shown, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", width)
    names = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
    read = SimpleNamespace(paths=[Path("boot.png")], empty=[False])
    predict._print(read, torch.linspace(0, 0.9, 10)[None], names, None, [[9]])
    output = capsys.readouterr().out
    assert "…" not in output
    for place, name in enumerate(names):
        assert (name in output) == (place >= 10 - shown)
        assert (f"{place / 10:.2f}" in output) == (place >= 10 - shown)


def test_where_no_capsule_is_long_no_class_is_named(tmp_path, capsys):
    """Noise is no digit, and an empty sheet is none, though the network's capsule for 1 is 0.8 long on black."""
    noise = np.random.default_rng(0).integers(0, 256, (28, 28)).astype(np.uint8)
    sheet = np.random.default_rng(0).normal(200, 6, (300, 400)).clip(0, 255).astype(np.uint8)
    five = sample_digits("test").images[int((sample_digits("test").labels == 5).nonzero()[0]), 0].numpy()
    for name, pixels in {"noise": noise, "sheet": sheet, "five": five}.items():
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    assert main(["predict", "capsnet-mnist", str(tmp_path), "--json", "--reconstruct", str(tmp_path / "drawn")]) == 0
    records = json.loads(capsys.readouterr().out)["predictions"]
    assert {Path(record["picture"]).stem: record["classes"] for record in records} == {
        "noise": [],
        "sheet": [],
        "five": ["5"],
    }
    assert len(list((tmp_path / "drawn").iterdir())) == 3  # of what is longest, named or not
    assert main(["predict", "capsnet-mnist", str(tmp_path / "noise.png")]) == 0
    printed = capsys.readouterr()
    assert re.search(r"no class \(\d\?\)", printed.out)
    assert "in 1 of 1 pictures no class is there" in printed.err
    assert main(["predict", "cnn-mnist", str(tmp_path / "noise.png"), "--json"]) == 0  # probabilities sum to 1
    assert len(json.loads(capsys.readouterr().out)["predictions"][0]["classes"]) == 1


def test_predict_skips_what_it_cannot_read_and_says_so(place, capsys):
    (place / "pictures" / "broken.png").write_bytes(b"\x89PNG nothing")
    assert main(["predict", "runs/demo-seed0", "pictures", "--json"]) == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["predictions"]) == 2
    assert "skipped" in captured.err
    assert "broken.png" in captured.err


@pytest.mark.usefixtures("any_length_counts")
def test_a_model_of_pairs_names_two_classes(place, capsys):
    assert main(["predict", "runs/pairs", "pictures", "--json"]) == 0
    assert [len(record["classes"]) for record in json.loads(capsys.readouterr().out)["predictions"]] == [2, 2]


@pytest.mark.usefixtures("any_length_counts")
def test_predict_draws_both_classes_of_a_pair_side_by_side(place, capsys):
    assert main(["predict", "runs/pairs", "pictures/five.png", "--json", "--reconstruct", "drawn"]) == 0
    record = json.loads(capsys.readouterr().out)["predictions"][0]
    run = open_run("runs/pairs")
    model = load_model(run)
    images = read_pictures([Path("pictures/five.png")], run, model).images
    with torch.no_grad():
        capsules = model(images).capsules
        alone = [model.reconstruct(capsules, torch.tensor([number])) for number in record["class_numbers"]]
    with Image.open(record["reconstruction"]) as drawn:
        expected = (torch.cat(alone, dim=3)[0, 0].clamp(0, 1) * 255).round()
        np.testing.assert_allclose(np.asarray(drawn, np.float32), expected, atol=1)


def test_tweak_and_reconstruct_write_pictures_of_the_right_shape(place):
    assert main(["tweak", "runs/demo-seed0", "--class", "5", "--out", "deep/grid.png"]) == 0
    with Image.open("deep/grid.png") as grid:
        assert grid.height > grid.width  # 16 rows, 11 columns
    assert main(["reconstruct", "runs/demo-seed0", "--count", "4", "--out", "rows.png"]) == 0
    with Image.open("rows.png") as rows:
        assert np.asarray(rows.convert("L")).std() > 10


@pytest.mark.parametrize(
    "arguments",
    [
        ["tweak", "runs/demo-seed0", "--class", "5"],
        ["reconstruct", "runs/demo-seed0"],
        ["data", "preview", "mnist-sample"],
    ],
)
def test_a_png_file_is_not_written_under_the_name_of_another_kind(arguments, place, capsys):
    assert main([*arguments, "--out", "x.gif"]) == 2
    assert "end in .png, not in .gif" in " ".join(capsys.readouterr().err.split())
    assert not Path("x.gif").exists()
    assert main([*arguments, "--out", "x.PNG"]) == 0


@pytest.mark.parametrize(
    ("arguments", "columns", "classes"),
    [
        (["runs/demo-seed0", "--count", "25"], 25, 1),
        (["runs/demo-seed0", "pictures"], 2, 1),
        (["runs/pairs", "--count", "15"], 15, 2),
        (["runs/pairs", "pictures"], 2, 2),
    ],
)
def test_reconstruct_shows_as_many_as_asked_and_names_both_of_a_pair(
    arguments, columns, classes, place, shown_reconstructions
):
    shown = shown_reconstructions
    assert main(["reconstruct", *arguments]) == 0
    assert len(shown["images"]) == len(shown["names"]) == columns
    model = load_model(arguments[0])
    with torch.no_grad():
        out = model(shown["images"])
        best = out.lengths.topk(classes, dim=1).indices
        drawn = sum(model.reconstruct(out.capsules, best[:, place]) for place in range(classes))
    assert shown["names"] == [", ".join(map(str, row)) for row in best.tolist()]
    torch.testing.assert_close(shown["drawn"], drawn.clamp(max=1))


def test_exported_weights_give_the_same_answers(place):
    """That ONNX agrees is tested beside the exporter; here only its examples run, for it takes seconds to import."""
    assert main(["export", "runs/demo-seed0", "--format", "safetensors", "--out", "plain"]) == 0
    assert {"config.json", "model.safetensors"} <= set(os.listdir("plain"))
    images = sample_digits("test").images[:3] / 255
    with torch.no_grad():
        torch.testing.assert_close(load_model("plain")(images).lengths, load_model("runs/demo-seed0")(images).lengths)


def test_exported_weights_know_their_classes_and_how_to_prepare_pictures(place):
    assert main(["export", "capsnet-fashion", "--format", "safetensors", "--out", "plain"]) == 0
    exported, shipped = open_run("plain"), open_run("capsnet-fashion")
    assert exported.class_names == shipped.class_names
    assert exported.recipe == shipped.recipe
    assert main(["export", "plain", "--format", "safetensors", "--out", "plain"]) == 0


def test_a_backend_that_is_not_here_does_not_keep_figures_from_being_drawn(place):
    """As a program inherits it that a notebook starts; it is read when matplotlib is imported, so in a new process."""
    arguments = ["tweak", "runs/demo-seed0", "--class", "5", "--out", "grid.png"]
    done = subprocess.run(
        [sys.executable, "-m", "torchcaps", *arguments],
        env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    with Image.open("grid.png") as grid:
        assert grid.height > grid.width
