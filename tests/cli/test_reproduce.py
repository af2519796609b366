"""torchcaps reproduce: its examples resolve, a small study runs from the command line, wrong input is one paragraph."""

from __future__ import annotations

import pytest
import typer

from study_examples import check_example, examples_of
from torchcaps.cli.app import main
from torchcaps.cli.study_runs import read_time
from torchcaps.train.studies import get_study
from training_runs import TINY


@pytest.mark.parametrize("example", examples_of("reproduce"))
def test_every_example_resolves(example, tmp_path, monkeypatch, capsys):
    check_example(example, tmp_path, monkeypatch, capsys)


def test_a_study_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = [part for change in TINY for part in ("--set", change)]
    settings += ["--set", "training.steps=4", "--set", "data.source=mnist-sample", "--device", "cpu"]
    command = ["reproduce", "table1", "--cell", "mnist-r1-reconstruction", "--seeds", "1", *settings, "--quiet"]
    assert main([*command, "--records", "records"]) == 0
    out = capsys.readouterr().out
    assert "of 500 |" in out
    assert "a small sample" in out  # nobody should take it for the paper's table
    assert (tmp_path / "records" / "mnist-r1-reconstruction" / "seed0" / "result.json").is_file()
    assert main(["reproduce", "table1", "--table-only", "--out", "records"]) == 0
    assert capsys.readouterr().out == out
    assert main([*command, "--set", "optimizer.lr=0.5"]) == 1
    assert "other settings (optimizer.lr changed)" in capsys.readouterr().err


def test_single_seeds(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = [part for change in TINY for part in ("--set", change)]
    settings += ["--set", "training.steps=2", "--set", "data.source=mnist-sample", "--device", "cpu", "--quiet"]
    command = ["reproduce", "table1", "--cell", "mnist-r1", *settings]
    assert main([*command, "--seed", "4", "--seed", "2", "--seed", "4"]) == 0
    assert sorted(path.name for path in (tmp_path / "runs/table1/mnist-r1").iterdir()) == ["seed2", "seed4"]
    assert capsys.readouterr().err.count("starts") == 2
    assert main([*command, "--seed", "2", "--seeds", "3"]) == 2
    assert "give one of the two" in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert main([*command, "--seed", "-1"]) == 2


def test_steps_and_epochs_in_one_call(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr("torchcaps.train.studies.run_study", lambda study, options, say: asked.append(options.changes))
    lengths = ["--set", "training.steps=4", "--set"]
    assert main(["reproduce", "ablation", *lengths, "training.epochs=2"]) == 1
    assert "training.steps=4 and training.epochs=2 are both given" in capsys.readouterr().err
    assert not asked
    main(["reproduce", "ablation", *lengths, "training.epochs=0"])
    study = get_study("ablation")
    assert study.recipe(study.cells[0], 0, asked[0]).training.steps == 4


def test_a_folder_without_runs_has_no_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "ablation", "--table-only", "--out", "typo", "--records", "records"]) == 1
    assert "there are no runs of ablation in typo to make a table of; name" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_time_that_is_over_exits_with_three(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torchcaps.train.studies.run_study", lambda *arguments: False)
    assert main(["reproduce", "ablation"]) == 3


def test_records_that_cannot_be_written_are_said_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torchcaps.train.studies.run_study", None)
    (tmp_path / "file").touch()
    assert main(["reproduce", "ablation", "--records", "file/records"]) == 1
    assert "choose another place with --records" in capsys.readouterr().err


def test_a_study_that_is_stopped_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stopped(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torchcaps.train.studies.run_study", stopped)
    assert main(["reproduce", "ablation"]) == 130
    assert "stopped; the same command goes on" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("8m", 480), ("1.5h", 5400)])
def test_times(text, seconds):
    assert read_time(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1m", "8 minutes", "inf", "nan"])
def test_wrong_times(text):
    with pytest.raises(typer.BadParameter, match="such as 90s, 8m or 1h"):
        read_time(text)
