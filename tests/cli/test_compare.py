"""torchcaps compare: its examples resolve; tuned, compared and read again from the records alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from study_examples import check_example, examples_of
from torchcaps.cli.app import main
from torchcaps.train.studies import Settings, StudyResult
from training_runs import TINY


def write_result(root: Path, cell: str, errors: int = 0, failure: str = "") -> None:
    StudyResult(cell, 0, "test", "fashion-mnist", errors, 10, "last", "fp32", 0, 9, 1.0, 1.0, failure=failure).write(
        root / cell / "seed0"
    )


@pytest.mark.parametrize("example", examples_of("compare"))
def test_every_example_resolves(example, tmp_path, monkeypatch, capsys):
    runs = tmp_path / "runs" / "compare-mnist"
    Settings("mnist", {}).write(runs)
    for place in range(1, 7):  # a first round, for the second
        write_result(runs / "tune", f"em.{place}", errors=place)
    check_example(example, tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("arguments", [["--data", "mnits"], ["--table-only"]])
def test_what_cannot_run_says_nothing_of_settings(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["compare", *arguments]) == 1
    assert capsys.readouterr().err.startswith("Error: there ")


def test_tuned_compared_and_read_from_the_records(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    changes = (*TINY, "training.steps=2", "data.source=mnist-sample")
    command = ["compare", "--routing", "k-means-inner", "--device", "cpu", "--quiet", "--out", "out"]
    command += [part for change in changes for part in ("--set", change)]
    assert main([*command, "--tune", "--set", "data.validation=0.1", "--records", "records"]) == 0
    capsys.readouterr()
    chosen = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert list(chosen["changes"]) == ["k-means-inner"]
    assert len(chosen["trials"]["k-means-inner"]) == 6
    assert (tmp_path / "records" / "tune" / "k-means-inner.6" / "seed0" / "result.json").is_file()
    assert main([*command, "--finals", "--set", "data.validation=0.1", "--records", "records"]) == 0
    assert len(list((tmp_path / "records" / "finals").glob("k-means-inner.*/seed*/result.json"))) == 9
    chosen = json.loads((tmp_path / "records" / "settings.json").read_text())
    assert len(chosen["trials"]["k-means-inner"]) == 3
    assert main(["compare", "--tune", "--table-only", "--out", "out", "--set", "data.source=mnist-sample"]) == 0
    assert json.loads((tmp_path / "out" / "settings.json").read_text()) == chosen  # the last word stays
    assert main([*command, "--tune", "--finals"]) == 2
    capsys.readouterr()

    assert main([*command, "--seeds", "1", "--records", "records"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if line.startswith("| k-means, inner"))
    assert "distance inner" in row
    assert "default" not in row
    result = json.loads((tmp_path / "records" / "k-means-inner" / "seed0" / "result.json").read_text())
    assert result["split"] == "test"
    assert len(result["couplings"]["classes"]["parents"]) == 3
    page = (tmp_path / "records" / "comparison.html").read_text()
    assert page.count("<svg") == 3
    assert (tmp_path / "records" / "couplings.csv").read_text().count("k-means-inner,classes,10,") == 3
    again = ["compare", "--table-only", "--out", "records"]
    assert main([*again, "--set", "data.source=mnist-sample"]) == 0
    assert capsys.readouterr().out == out

    Settings("mnist", {"k-means-inner": ("optimizer.lr=0.5",)}).write(tmp_path / "other")
    assert main([*again, "--settings", "other/settings.json"]) == 1
    assert "was trained with optimizer.lr" in capsys.readouterr().err
    before = (tmp_path / "records" / "table.md").read_text()
    for data in ("mnist", "fashion", "multimnist"):
        assert main([*again, "--data", data]) == 1
        assert "k-means-inner/seed0 was trained with data.source = 'mnist-sample', but" in capsys.readouterr().err
    assert main([*again, "--data", "multimnist", "--set", "data.source=mnist-sample"]) == 1
    assert "was trained with data.task = 'single', but" in capsys.readouterr().err
    assert (tmp_path / "records" / "table.md").read_text() == before


@pytest.mark.parametrize("more", [[], ["--tune"]])
def test_a_folder_without_runs_has_no_table(more, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Settings("mnist", {}).write(tmp_path / "other")
    assert main(["compare", "--table-only", "--out", "typo", "--settings", "other/settings.json", *more]) == 1
    assert "-mnist in typo" in capsys.readouterr().err
    assert not (tmp_path / "typo").exists()


def test_without_tuning_the_table_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_result(tmp_path / "runs" / "compare-fashion", "em", failure="nan")
    assert main(["compare", "--data", "fashion", "--table-only"]) == 0
    captured = capsys.readouterr()
    assert "choose them with --tune first" in captured.err
    assert captured.out.count("(default, not tuned)") == 14
    assert main(["compare", "--data", "digits", "--table-only"]) == 1
    assert "no comparison on 'digits'" in capsys.readouterr().err
    monkeypatch.setattr("torchcaps.train.studies.run_study", lambda *arguments: False)
    assert main(["compare"]) == 3
