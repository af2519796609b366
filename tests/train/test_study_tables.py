"""Tables, records and pictures of studies follow from the results of their runs alone."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tiny_studies import tiny_study
from torchcaps.errors import TorchcapsError
from torchcaps.eval.figures import BesidePublished, changes_figure, published_figure
from torchcaps.train.recipe_files import save_recipe
from torchcaps.train.studies import (
    Cell,
    StudyResult,
    collect_records,
    get_study,
    list_studies,
    read_results,
    study_table,
)
from torchcaps.train.studies.changes import change_lines, write_changes
from torchcaps.train.studies.definition import joined
from torchcaps.train.studies.published import published_lines, write_published
from torchcaps.train.studies.search import SEARCHES

RECORDS = Path(__file__).parents[2] / "records"
SHIPPED = [get_study(name) for name in list_studies() if name != "search"] + list(SEARCHES.values())


@pytest.mark.parametrize(
    ("study", "folder"),
    [(study, folder.name) for study in SHIPPED for folder in sorted(RECORDS.glob(f"{study.name}*"))],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_tables_among_the_records_are_what_the_records_give(study, folder, tmp_path):
    """A cell whose words or place change must not leave an old table behind; nor in a folder of longer runs."""
    for file in study_table(study, RECORDS / folder).write(tmp_path):
        assert file.read_text() == (RECORDS / folder / file.name).read_text(), file.name


def write_result(
    root: Path, cell: str, seed: int, errors: int, data: str = "mnist", wrong: tuple[int, ...] | None = None
) -> None:
    folder = root / cell / f"seed{seed}"
    result = StudyResult(cell, seed, "test", data, errors, 10_000, "last", "fp32", 1000, 50, 2.0, 1.5, wrong=wrong)
    result.write(folder)
    assert StudyResult.read(folder / "result.json") == result
    for name in ("recipe.toml", "environment.json", "metrics.jsonl"):
        (folder / name).write_text(f"# {name}")
    (folder / "checkpoints").mkdir(exist_ok=True)


def test_the_table_says_what_the_records_say(tmp_path):
    study = tiny_study(
        Cell("one", "demo", (), {"what": "one | seed"}), Cell("none", "demo", (), {"what": "nothing yet"})
    )
    for seed, errors in enumerate((25, 26, 24)):
        write_result(tmp_path, "plain", seed, errors)
    write_result(tmp_path, "one", 0, 30)
    table = study_table(study, tmp_path)
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["as it is"][:3] == ("0.250 ± 0.010", "0.225 … 0.275", "3")  # Student's interval
    assert rows["as it is"][-2:] == ("2", "25, 26, 24 of 10,000")
    assert rows["one | seed"][:3] == ("0.300", "0.210 … 0.428", "1")  # Wilson's
    assert rows["one | seed"][3:5] == ("+0.050", "–")
    assert rows["nothing yet"][0] == "–"
    write_result(tmp_path, "one", 1, 32)
    difference, interval = study_table(study, tmp_path).rows[1][4:6]
    assert difference == "+0.060"
    assert interval.startswith("−")  # two seeds cannot tell them apart
    files = {file.suffix: file.read_text() for file in table.write(tmp_path)}
    assert list(csv.reader(io.StringIO(files[".csv"])))[1] == list(table.rows[0])
    assert "one \\| seed" in files[".md"]
    assert "<td class=number>0.250 ± 0.010</td>" in files[".html"]
    write_result(tmp_path, "one", 2, 32, data="mnist-sample")
    assert "a small sample" in study_table(study, tmp_path).note


def test_a_table_says_what_was_set_for_its_runs(tmp_path):
    study = replace(tiny_study(Cell("other", "demo", (), {"what": "other"})), folds=True)
    cell, other = study.cells

    def note_with(cell, seed, changes=(), scale=1.0, study=study):
        write_result(tmp_path, cell.name, seed, 25)
        recipe = study.recipe(cell, seed, changes, scale)
        (tmp_path / cell.name / f"seed{seed}" / "recipe.toml").write_text(save_recipe(recipe))
        return study_table(study, tmp_path).note

    assert note_with(cell, 0) == "A note."
    assert note_with(cell, 1) == "A note."  # the fold of a seed is the study's own
    assert note_with(cell, 0, scale=2 / 3) == "A note. Trained 0.667 times as long as the study says: plain."
    assert note_with(cell, 1, scale=2 / 3) == "A note. Trained 0.667 times as long as the study says: all rows."
    note = note_with(other, 0, ["training.batch_size=16", "log.every=2"])
    assert note == (
        "A note. Trained 0.667 times as long as the study says: plain. Changed by --set: training.batch_size."
    )
    note_with(cell, 0, ["training.epochs=2"])
    assert note_with(cell, 1, ["training.epochs=2"]).endswith("set: training.batch_size, training.epochs.")
    in_epochs = replace(study, changes=("training.epochs=2", "data.validation=0.1"), cells=(cell,))
    assert note_with(cell, 0, ["training.steps=9"], study=in_epochs).endswith("training.steps.")
    together = joined("together", cell, 2, {"what": "two as one"})
    assert "the study says: plain, together." in note_with(
        cell, 0, scale=2 / 3, study=replace(study, cells=(cell, other, together))
    )
    (tmp_path / "plain" / "seed1" / "recipe.toml").write_text("[")
    with pytest.raises(TorchcapsError, match=r"seed1/recipe\.toml is damaged"):
        study_table(study, tmp_path)


def test_intervals_stay_between_0_and_100_and_equal_seeds_have_none(tmp_path):
    study = tiny_study(
        Cell("bad", "demo", (), {"what": "bad"}),
        Cell("good", "demo", (), {"what": "good"}),
        Cell("same", "demo", (), {"what": "same"}),
    )
    for cell, counts in {"plain": (30, 30), "bad": (9900, 9990), "good": (1, 9), "same": (20, 20)}.items():
        for seed, errors in enumerate(counts):
            write_result(tmp_path, cell, seed, errors)
    rows = {row[0]: row[1:] for row in study_table(study, tmp_path).rows}
    assert rows["bad"][1].endswith(" … 100.000")
    assert rows["good"][1].startswith("0.000 … ")
    assert rows["as it is"][:2] == ("0.300 ± 0.000", "–")
    assert rows["same"][:5] == ("0.200 ± 0.000", "–", "2", "−0.100", "–")
    assert rows["good"][4] != "–"


def test_a_row_says_of_how_many_examples_and_seeds_a_number_is(tmp_path):
    study = replace(tiny_study(), extras=("held out",))
    for seed, (examples, extras) in enumerate([(50, {}), (200, {"held out": (1, 10)})]):
        result = StudyResult("plain", seed, "test", "mnist", 5, examples, "last", "fp32", 1000, 50, 2.0, 1.5, extras)
        result.write(tmp_path / "plain" / f"seed{seed}")
    table = study_table(study, tmp_path)
    row = dict(zip(table.head, table.rows[0], strict=True))
    assert row["errors of each seed"] == "5 of 50, 5 of 200"
    assert row["held out"] == "10.000 (1 of 2 seeds)"


def test_a_row_says_how_many_examples_every_seed_gets_wrong(tmp_path):
    study = tiny_study(Cell("older", "demo", (), {"what": "older"}), Cell("none", "demo", (), {"what": "none"}))
    write_result(tmp_path, "plain", 0, 3, wrong=(2, 7, 900))
    assert "wrong in every seed" not in study_table(study, tmp_path).head  # of one seed it says nothing
    write_result(tmp_path, "plain", 1, 2, wrong=(7, 900))
    write_result(tmp_path, "plain", 2, 3, wrong=(5, 7, 900))
    write_result(tmp_path, "older", 0, 3, wrong=(2, 7, 900))
    write_result(tmp_path, "older", 1, 2)  # a result that was written before the examples were
    for seed in range(2):
        write_result(tmp_path, "none", seed, 0, wrong=())
    table = study_table(study, tmp_path)
    assert table.head[-2:] == ("wrong in every seed", "errors of each seed")
    assert [row[-2] for row in table.rows] == ["2", "–", "0"]
    folds = study_table(replace(study, folds=True), tmp_path)  # each seed has examples of its own
    assert "wrong in every seed" not in folds.head
    assert (tmp_path / "plain/seed0/result.json").read_text().count('"wrong": "2 7 900"') == 1


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ('"2 7 900"', '"2 7"'),
        ('"2 7 900"', '"2 7 9x"'),
        ('"2 7 900"', '"2 7 90000"'),
        ('"2 7 900"', '"2 7 -9"'),
        ('"2 7 900"', "[2, 7, 900]"),
        ('"errors"', '"erors"'),
        ('"examples"', '"exmples"'),
    ],
)
def test_a_damaged_list_of_wrong_examples_is_named(tmp_path, part, damage):
    write_result(tmp_path, "plain", 0, 3, wrong=(2, 7, 900))
    file = tmp_path / "plain/seed0/result.json"
    file.write_text(file.read_text().replace(part, damage))
    with pytest.raises(TorchcapsError, match=r"seed0/result\.json is damaged .*; remove it to measure again"):
        study_table(tiny_study(), tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("errors", "3", "errors must be a whole number"),
        ("errors", 10_001, "more errors than examples"),
        ("examples", 0, "more errors than examples, or no examples"),
        ("parameters", 1e400, "Infinity is no number"),
        ("epochs", None, "epochs must be a number"),
        ("training_seconds", -1, "training_seconds must be a number from 0"),
        ("seed", True, "seed must be a whole number"),
        ("extras", {"a": [1]}, "extras must be a table"),
        ("extras", {"a": [5, 0]}, "more errors than examples"),
        ("members", "abc", "members must be a list"),
        ("couplings", {"a": {"upper": -1, "entropy": [1.0], "parents": [1.0]}}, "couplings.'a': upper must be"),
        ("couplings", {"a": {"upper": 2, "entropy": [], "parents": [1.0]}}, "entropy must be a list"),
        ("couplings", [1], "couplings must be a table"),
    ],
)
def test_a_result_out_of_range_is_named(tmp_path, key, value, words):
    write_result(tmp_path, "plain", 0, 3)
    file = tmp_path / "plain/seed0/result.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), key: value}))
    with pytest.raises(
        TorchcapsError, match=rf"seed0/result\.json is damaged .*({words}).*; remove it to measure again"
    ):
        study_table(tiny_study(), tmp_path)


@pytest.mark.parametrize("data", ["multimnist:paper:mnist", "affnist-like"])
def test_one_seed_on_made_examples_has_no_interval(tmp_path, data):
    """They share their digits; as many draws of their own they are not."""
    write_result(tmp_path, "plain", 0, 25, data)
    assert study_table(tiny_study(), tmp_path).rows[0][1:3] == ("0.250", "–")
    write_result(tmp_path, "plain", 1, 27, data)
    assert study_table(tiny_study(), tmp_path).rows[0][2] == "0.133 … 0.387"


def test_records_hold_what_is_needed_and_nothing_large(tmp_path):
    study = tiny_study()
    write_result(tmp_path / "runs", "plain", 0, 25)
    (tmp_path / "runs" / "plain" / "seed1").mkdir()  # not finished
    shutil.copytree(tmp_path / "runs" / "plain" / "seed0", tmp_path / "runs" / "plain" / "seed0-old")  # put aside
    assert collect_records(study, tmp_path / "runs", tmp_path / "records") == 1
    kept = {str(path.relative_to(tmp_path / "records")) for path in (tmp_path / "records").rglob("*.*")}
    files = ("recipe.toml", "environment.json", "metrics.jsonl", "result.json")
    assert kept == {f"plain/seed0/{name}" for name in files} | {"table.md", "table.csv", "table.html"}
    assert (tmp_path / "records" / "table.md").read_text() == study_table(study, tmp_path / "runs").markdown()
    assert "25 of 10,000" in (tmp_path / "records" / "table.md").read_text()
    (tmp_path / "records" / "plain" / "seed0" / "result.json").write_text("{}")
    with pytest.raises(TorchcapsError, match="damaged or no result"):
        read_results(tmp_path / "records", ["plain"])


def test_a_record_is_whole_or_not_there(tmp_path, monkeypatch):
    def full(*places: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_result(tmp_path / "runs", "plain", 0, 25)
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(TorchcapsError, match=r"the disk is full; choose another place with --records"):
        collect_records(tiny_study(), tmp_path / "runs", tmp_path / "records")
    assert list((tmp_path / "records" / "plain" / "seed0").iterdir()) == []
    (tmp_path / "runs" / "plain" / "seed0" / "recipe.toml").unlink()
    with pytest.raises(TorchcapsError, match=r"recipe\.toml cannot be copied: No such file"):
        collect_records(tiny_study(), tmp_path / "runs", tmp_path / "records")


def test_seeds_stand_beside_what_was_published(tmp_path):
    study = get_study("table1")
    assert write_published(study, tmp_path) == []  # nothing has been run
    for cell, counts in {"mnist-best": (25, 75), "mnist-open": (25,), "multimnist-r1": (625,)}.items():
        for seed, errors in enumerate(counts):
            write_result(tmp_path, cell, seed, errors)
    panels = published_lines(study, tmp_path)
    assert panels == {
        "MNIST": [
            BesidePublished("CapsNet, R = 3, reconstruction", [0.25, 0.75], 0.25, 0.005),
            BesidePublished("CapsNet with a stem, R = 3, reconstruction", [0.25]),
        ],
        "MultiMNIST": [BesidePublished("CapsNet, R = 1, reconstruction", [6.25], 7.5)],
    }
    digits, pairs = published_figure(panels).axes
    assert [label.get_text() for label in digits.get_yticklabels()] == [line.name for line in panels["MNIST"]]
    drawn = {tuple(line.get_xdata()) for line in digits.lines} | {tuple(line.get_xdata()) for line in pairs.lines}
    assert {(0.25, 0.75), (0.5, 0.5), (0.25,), (6.25,), (7.5,)} <= drawn
    for shown in (panels, {"MNIST": panels["MNIST"]}):
        figure = published_figure(shown)
        figure.canvas.draw()
        inside, whole = figure.legends[0].get_window_extent(), figure.bbox
        assert (whole.x0 <= inside.x0, inside.x1 <= whole.x1) == (True, True)
    (picture,) = write_published(study, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert write_published(get_study("affine"), tmp_path) == []  # measured on another set than the paper's


def test_changes_stand_beside_what_they_change(tmp_path):
    study = get_study("ablation")
    write_result(tmp_path, "batch-32", 0, 40)
    assert write_changes(study, tmp_path) == []  # there is nothing to compare with
    for seed, errors in enumerate((50, 100)):
        write_result(tmp_path, "base", seed, errors)
    lines = change_lines(study, tmp_path)
    assert lines == {"as in the authors' code": [0.5, 1.0], "batch: 32": [0.4]}
    (panel,) = changes_figure(lines, 0.75).axes
    assert [label.get_text() for label in panel.get_yticklabels()] == list(lines)
    assert {(0.75, 0.75), (0.5, 1.0), (0.4,)} <= {tuple(line.get_xdata()) for line in panel.lines}
    (picture,) = write_changes(study, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert write_changes(get_study("table1"), tmp_path) == []


def test_the_largest_error_does_not_touch_the_edge():
    close = published_figure({"MNIST": [BesidePublished("a", [0.42, 0.43]), BesidePublished("b", [0.44])]})
    for figure in (close, changes_figure({"a": [0.42, 0.43], "b": [0.44]}, 0.42)):
        figure.canvas.draw()
        (panel,) = figure.axes
        radius = max(line.get_markersize() for line in panel.lines) / 2 / 72 * figure.dpi
        place, _ = panel.transData.transform((0.44, 0))
        assert place + radius < panel.get_window_extent().x1
        assert panel.get_xlim()[0] == 0
