"""Mistakes are named by the files of the user: as a table and as a picture, with one class an example or several."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import torchcaps
from published_files import picture_bytes
from torchcaps.cli.app import main
from torchcaps.data import load, sample_digits
from torchcaps.eval import evaluate, load_model

CLASSES = ("no finding", "pneumonia")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Sixty images of one's own in two folders, and a network that has learned nothing."""
    digits = sample_digits("test")
    for number in range(60):
        home = tmp_path / "scans" / CLASSES[number % 2]
        home.mkdir(parents=True, exist_ok=True)
        (home / f"scan, {number:02}.png").write_bytes(picture_bytes(digits.images[number, 0].numpy()))
    torchcaps.create_model("small-cnn", channels=4, hidden=8, num_classes=2).save_pretrained(tmp_path / "net")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return "folder:scans"


def rows(file: str = "wrong.csv") -> list[dict[str, str]]:
    with Path(file).open(newline="", encoding="utf-8") as text:
        return list(csv.DictReader(text))


def test_a_table_of_all_mistakes(own, capsys):
    assert main(["evaluate", "net", "--data", own, "--split", "train", "--mistakes", "deep/wrong.csv", "--json"]) == 0
    captured = capsys.readouterr()
    facts = json.loads(captured.out)
    split = load(own).train
    result = evaluate(load_model("net"), split)
    found = rows("deep/wrong.csv")
    assert len(found) == facts["errors"] == result.error.count > 0
    assert f"wrote deep/wrong.csv: {len(found)} of 48 examples" in captured.err
    assert list(found[0]) == ["index", "file", "true", "predicted", "score no finding", "score pneumonia"]
    for row, position in zip(found, result.wrong().tolist(), strict=True):
        assert int(row["index"]) == position
        assert row["file"] == split.files[position]
        assert (Path("scans") / row["file"]).is_file()
        assert row["file"].startswith(row["true"])
        assert {row["true"], row["predicted"]} == set(CLASSES)
        scores = [float(row[f"score {name}"]) for name in CLASSES]
        assert scores == pytest.approx(result.scores[position].tolist(), abs=1e-5)


def test_no_mistakes_is_a_table_of_its_head_alone(own):
    split = load(own).test
    result = evaluate(load_model("net"), split)
    right = [split.files[place] for place in range(len(split)) if place not in result.wrong().tolist()]
    lines = ["path,label,split", *(f'"{name}",{name.split("/")[0]},test' for name in right)]
    used = list(load(own).train.files)
    lines += [f'"{name}",{name.split("/")[0]},train' for name in used]
    Path("scans/right.csv").write_text("\n".join(lines))
    assert main(["evaluate", "net", "--data", "csv:scans/right.csv", "--mistakes", "wrong.csv"]) == 0
    assert rows() == []
    assert Path("wrong.csv").read_text().startswith("index,file,true,predicted,score")


def test_a_place_that_cannot_be_written_is_said_before_the_work(own, capsys):
    assert main(["evaluate", "net", "--data", own, "--mistakes", "scans"]) == 1
    assert "scans is a folder; name a file in it with --mistakes" in capsys.readouterr().err


def test_images_without_files_have_an_index_and_pairs_two_classes(place):
    assert main(["evaluate", "runs/demo-seed0", "--mistakes", "wrong.csv"]) == 0
    assert {row["file"] for row in rows()} == {""}
    assert main(["evaluate", "runs/pairs", "--pairs", "50", "--mistakes", "pairs.csv"]) == 0
    assert all(row["true"].count(";") == row["predicted"].count(";") == 1 for row in rows("pairs.csv"))


def test_several_classes_of_one_image_stand_in_one_field(own):
    files = [f"{name}/scan, {number:02}.png" for number in range(60) for name in [CLASSES[number % 2]]]
    labels = ["", "a", "b", "a;b"]
    lines = [f'"{name}",{labels[number % 4]},{("train", "test")[number % 3 == 0]}' for number, name in enumerate(files)]
    Path("scans/all.csv").write_text("\n".join(["path,labels,split", *lines]))
    assert main(["evaluate", "net", "--data", "csv:scans/all.csv", "--mistakes", "wrong.csv"]) == 0
    split = load("csv:scans/all.csv").test
    true = dict(zip(split.files, split.labels.tolist(), strict=True))
    found = rows()
    assert found
    for row in found:
        assert row["true"].split(";") == ([n for n, here in zip("ab", true[row["file"]], strict=True) if here] or [""])
        named = [name for name in "ab" if float(row[f"score {name}"]) > 0.5]
        assert row["predicted"] == ";".join(named) != row["true"]


def test_mistakes_of_ones_own_run_name_its_files(own, capsys):
    assert main(["mistakes", "net", "--data", own, "--split", "train", "--examples", "3", "--columns", "2"]) == 0
    out = capsys.readouterr().out
    split = load(own).train
    wrong = evaluate(load_model("net"), split).wrong().tolist()
    for position in wrong[:3]:
        assert split.files[position] in out
    assert split.files[wrong[3]] not in out
    assert f"… and {len(wrong) - 3} more; torchcaps evaluate net --mistakes wrong.csv lists all" in out
    assert Path("mistakes.png").read_bytes().startswith(b"\x89PNG")


def test_mistakes_of_shipped_weights_and_of_a_checkpoint(place, capsys):
    for model in ("runs/demo-seed0", "runs/demo-seed0/final", "runs/demo-seed0/checkpoints/step-00000040"):
        assert main(["mistakes", model, "--examples", "2"]) == 0
        assert "example " in capsys.readouterr().out


def test_seeds_of_a_recipe_take_no_other_data(place, capsys):
    assert main(["mistakes", "runs", "--split", "train"]) == 1
    assert "--data and --split are for one run, but runs holds the seeds" in capsys.readouterr().err


def test_two_classes_are_measured_with_each_as_the_positive_one(own, capsys):
    assert main(["evaluate", "net", "--data", own]) == 0
    out = capsys.readouterr().out
    result = evaluate(load_model("net"), load(own).test)
    for positive, name in enumerate(CLASSES):
        first = next(line for line in out.splitlines() if line.startswith(name) and "sensitivity" in line)
        assert str(result.two_class_metrics(positive).sensitivity) in first
    assert f"area under the ROC curve, of either class: {result.roc_curve(1)}" in out
    assert main(["evaluate", "net", "--data", own, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [entry["positive"] for entry in facts["two_classes"]] == list(CLASSES)
    assert facts["area_under_roc"] == result.roc_curve(1).area
