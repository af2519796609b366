"""What the tests of ``reproduce`` and ``compare`` share: the examples of their help, run without the training."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.main import get_command

from torchcaps.cli.app import app, main
from torchcaps.train.studies import Study, StudyOptions

RECORDS = Path(__file__).parents[1] / "records"


def examples_of(command: str) -> list[str]:
    text = inspect.cleandoc(get_command(app).commands[command].help)
    return [line.strip() for line in text.splitlines() if re.match(r"\s+torchcaps ", line)]


def check_example(
    example: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The runs themselves take hours on a GPU; all that comes before and after them is done."""
    plans: list[int] = []

    def plan(study: Study, options: StudyOptions, tell: object) -> bool:
        cells = study.choose(options.cells)
        plans.append(len([study.recipe(cell, 0, options.changes, options.scale) for cell in cells]))
        return True

    monkeypatch.chdir(folder)
    monkeypatch.setattr("torchcaps.train.studies.run_study", plan)
    words = shlex.split(example)[1:]
    if "--table-only" in words:  # of runs that are there
        shown = Path(words[words.index("--out") + 1])
        shutil.copytree(RECORDS / shown.name, shown)
    assert main(words) == 0
    assert plans or "--table-only" in example
    assert "| 95 % interval |" in capsys.readouterr().out
