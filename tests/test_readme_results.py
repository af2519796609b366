"""The figures of the README's first table are those of the records that its rows point to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchcaps.eval import summarize_seeds
from torchcaps.train.studies.results import StudyResult

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\|[^|]+\|[^|]+\|([^|]+)\| (\d+) \| \[runs\]\((records/[\w/-]+)\) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "README.md").read_text().split("## Ten lines of Python")[0])


def test_the_table_is_there():
    assert len(ROWS) >= 9


@pytest.mark.parametrize(("figure", "seeds", "folder"), ROWS)
def test_a_figure_is_that_of_its_records(figure, seeds, folder):
    results = [StudyResult.read(file) for file in sorted((ROOT / folder).glob("seed*/result.json"))]
    found = summarize_seeds([result.error.percent for result in results])
    assert {result.split for result in results} == {"test"}
    assert len(results) == int(seeds)
    spread = f" ± {found.deviation:.2f}" if len(results) > 1 else ""
    assert figure.strip(" *") == f"{found.mean:.2f}{spread}"


def test_the_affine_figures_are_those_of_the_records():
    quoted = re.search(
        r"\[([\d.]+) against ([\d.]+) % wrong\]\([^)]*\), ([\d.]+) % with the stem", (ROOT / "README.md").read_text()
    )
    for text, cell in zip(quoted.groups(), ("capsnet", "twin", "stem"), strict=True):
        files = (ROOT / "records" / "affine" / cell).glob("seed*/result.json")
        found = summarize_seeds([StudyResult.read(file).error.percent for file in files])
        assert text == f"{found.mean:.1f}"
