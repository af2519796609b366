"""Models of pictures that show any number of classes: what the commands name, draw and refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import torchcaps
from torchcaps.cli.app import main
from torchcaps.eval import load_model, open_run
from torchcaps.eval.pictures import read_pictures


def test_a_model_of_any_number_of_classes_names_all_above_a_half(place, capsys):
    np.savez("set.npz", images=np.zeros((20, 28, 28), np.uint8), labels=np.ones((20, 3), np.uint8))
    changes = ["training.batch_size=8", "training.steps=8", "model.conv_channels=8", "model.primary_types=2"]
    assert main(["train", "demo", "data.source=npz:set.npz", "--run-dir", "runs/several", *changes]) == 0
    capsys.readouterr()
    assert main(["predict", "runs/several", "pictures", "--json"]) == 0
    for record in json.loads(capsys.readouterr().out)["predictions"]:
        assert set(record["classes"]) == {name for name, length in record["lengths"].items() if length > 0.5}
        assert len(record["classes"]) != 1


def run_of_any_number(loud: tuple[int, ...]) -> None:
    """A model of pictures that show any number of three classes; it names those of ``loud`` in every picture."""
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2, num_classes=3)
    with torch.no_grad():
        model.classes.bias.zero_()[list(loud)] = 3.0
    model.save_pretrained("runs/any/final")
    facts = {"data": {"classes": ["ant", "bee", "cat"], "any_number_of_classes": True}}
    Path("runs/any/environment.json").write_text(json.dumps(facts))
    Path("runs/any/recipe.toml").write_text('[data]\nsource = "npz:any.npz"\n')
    pictures, labels = np.zeros((20, 28, 28), np.uint8), np.arange(60).reshape(20, 3) % 2
    np.savez("any.npz", images=pictures, labels=labels.astype(np.uint8), classes=np.array(["ant", "bee", "cat"]))


def test_a_model_that_names_nothing_has_no_calibration_error(place, capsys):
    run_of_any_number(loud=())
    assert main(["evaluate", "runs/any"]) == 0
    assert re.search(r"calibration error\s+– \(no class was named\)", capsys.readouterr().out)
    assert main(["report", "runs/any", "runs/any", "--out", "report.html"]) == 0
    page = Path("report.html").read_text()
    assert "No class was named" in page
    assert "Calibration error" not in page


@pytest.mark.parametrize("loud", [(0, 2), ()])
def test_predict_draws_all_that_are_named_of_any_number(loud, place):
    run_of_any_number(loud)
    assert main(["predict", "runs/any", "pictures/five.png", "--reconstruct", "drawn"]) == 0
    run = open_run("runs/any")
    model = load_model(run)
    images = read_pictures([Path("pictures/five.png")], run, model).images
    with torch.no_grad():
        out = model(images)
        together = model.reconstruct(out.capsules, out.lengths > 0.5)
    with Image.open("drawn/five.png") as drawn:
        np.testing.assert_allclose(np.asarray(drawn, np.float32), (together[0, 0] * 255).round(), atol=1)


@pytest.mark.parametrize(("loud", "names"), [((0, 2), "ant, cat"), ((), "none")])
@pytest.mark.parametrize("arguments", [[], ["pictures"]])
def test_reconstruct_draws_all_that_are_named_of_any_number(loud, names, arguments, place, shown_reconstructions):
    run_of_any_number(loud)
    shown = shown_reconstructions
    assert main(["reconstruct", "runs/any", *arguments]) == 0
    assert set(shown["names"]) == {names}
    model = load_model("runs/any")
    with torch.no_grad():
        out = model(shown["images"])
        together = model.reconstruct(out.capsules, out.lengths > 0.5)
    torch.testing.assert_close(shown["drawn"], together)


def test_the_report_draws_all_that_are_named_of_any_number(place):
    run_of_any_number(loud=(0, 2))
    assert main(["report", "runs/any", "--out", "report.html"]) == 0
    page = Path("report.html").read_text()
    assert "for the classes ant and cat" in page
    assert "all capsules longer than 0.5" in page


@pytest.mark.parametrize(("figure", "words"), [("3", "any number"), ("4", "any number"), ("5", "pairs of digits")])
def test_figures_of_any_number_of_classes_are_refused_by_their_name(figure, words, place, capsys):
    run_of_any_number(loud=(0,))
    assert main(["figures", figure, "--model", "runs/any"]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert words in error
    assert "learned from pairs" not in error


def test_data_that_has_moved_can_be_named(place, capsys):
    run_of_any_number(loud=())
    Path("any.npz").rename("moved.npz")
    assert main(["evaluate", "runs/any"]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert "recipe names npz:any.npz; if the data has moved, name it with --data" in error
    assert main(["evaluate", "runs/any", "--data", "npz:moved.npz"]) == 0
    assert main(["evaluate", "runs/any", "--data", "npz:any.npz"]) == 1
    assert "--data" not in capsys.readouterr().err  # it was named
