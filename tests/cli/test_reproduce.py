"""torchcaps reproduce: its examples resolve, a small study runs from the command line, wrong input is one paragraph."""

from __future__ import annotations

import inspect
import re
import shlex

import pytest
import typer
from typer.main import get_command

from torchcaps.cli.app import app, main
from torchcaps.cli.study_runs import read_time
from torchcaps.train.studies import Study, StudyOptions
from training_runs import TINY

HELP = inspect.cleandoc(get_command(app).commands["reproduce"].help)
EXAMPLES = [line.strip() for line in HELP.splitlines() if re.match(r"\s+torchcaps ", line)]


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_resolves(example, tmp_path, monkeypatch, capsys):
    """The runs themselves take hours on a GPU; all that comes before and after them is done."""
    plans: list[int] = []

    def plan(study: Study, options: StudyOptions, tell: object) -> bool:
        cells = study.choose(options.cells)
        recipes = [study.recipe(cell, 0, options.changes, options.scale) for cell in cells]
        plans.append(len(recipes))
        return True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torchcaps.train.studies.run_study", plan)
    assert main(shlex.split(example)[1:]) == 0
    assert plans or "--table-only" in example
    assert "| 95 % interval |" in capsys.readouterr().out


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
    assert "other settings (optimizer.lr differ)" in capsys.readouterr().err


def test_time_that_is_over_exits_with_three(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torchcaps.train.studies.run_study", lambda *arguments: False)
    assert main(["reproduce", "ablation"]) == 3


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("8m", 480), ("1.5h", 5400)])
def test_times(text, seconds):
    assert read_time(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1m", "8 minutes", "inf", "nan"])
def test_wrong_times(text):
    with pytest.raises(typer.BadParameter, match="such as 90s, 8m or 1h"):
        read_time(text)
