"""The page on reproduction: every command resolves, every test and file that it points to exists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean

from typer.main import get_command

from torchcaps.cli.app import app
from torchcaps.train.studies import StudyResult, list_studies

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reproduction.md").read_text()


def test_commands_and_options_exist():
    commands = get_command(app).commands
    known = {option for parameter in commands["reproduce"].params for option in parameter.opts}
    lines = re.findall(r"^\$ torchcaps (.+)$", TEXT, flags=re.MULTILINE)
    assert len(lines) >= 8
    for line in lines:
        command, argument = line.split()[:2]
        assert command in commands
        if command == "reproduce":
            assert argument in list_studies()
            assert set(re.findall(r" (--[a-z-]+)", line)) <= known
    assert set(re.findall(r"^\| `(--[a-z-]+)", TEXT, flags=re.MULTILINE)) <= known
    assert {f"`{name}`" for name in list_studies()} <= set(re.findall(r"^\| (`[a-z0-9]+`)", TEXT, flags=re.MULTILINE))


def test_what_it_points_to_exists():
    for link in re.findall(r"\]\((\.\./[^)]+)\)", TEXT):
        assert (ROOT / "docs" / link).exists(), link
    tests = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"\b(test_[a-z_]+)`", TEXT):
        assert f"def {name}(" in tests, name


def results_of(folder: str) -> list[StudyResult]:
    return [StudyResult.read(file) for file in sorted((ROOT / "records" / folder).glob("seed*/result.json"))]


def test_what_it_says_of_wrong_digits_is_that_of_the_records():
    text = " ".join(TEXT.split())
    seeds = results_of("table1/mnist-open")
    errors = [result.errors for result in seeds]
    always = set.intersection(*(set(result.wrong) for result in seeds))
    once = set.union(*(set(result.wrong) for result in seeds))
    shipped = json.loads((ROOT / "records/always-wrong/wrong.json").read_text())
    others = {name: set(map(int, places.split())) for name, places in shipped.items()}
    everywhere = always.intersection(*others.values())
    count = len(always)
    assert f"have {min(errors)} to {max(errors)} errors, and {count} of them are the same digits in all five" in text
    assert (len(everywhere), len(always) - len(everywhere)) == (13, 9)
    assert f"Thirteen of these {count} are wrong, too" in text
    assert "The other nine are each right in at least one of these two" in text
    changing = fmean(errors) - count
    assert 0.6 < (fmean(errors) - 25) / changing < 0.7  # two thirds
    assert count > 20
    assert f"--examples {count}`" in text
    record = (ROOT / "records/always-wrong/README.md").read_text()
    assert f"{len(once)} digits are wrong in at least one of the five seeds, {count} in all five" in record
    for name, wrong in others.items():
        row = next(line for line in record.splitlines() if line.startswith(f"| `{name}`"))
        assert row.endswith(f"| {len(wrong)} | {len(wrong & always)} |")
    words = " ".join((ROOT / "README.md").read_text().split())
    assert f"[{count} are the same digits in all five seeds]" in words


def test_what_it_says_of_batches_is_that_of_the_records():
    text = " ".join(TEXT.split())
    (large,), (small,) = (
        results_of(f"search-mnist-open/{cell}") for cell in ("deep-stem-elastic", "deep-stem-elastic-batch-128")
    )
    assert f"gave {large.errors} errors to batches of 512 and {small.errors} to batches of 128" in text
    means = [
        fmean(result.errors for result in results_of(cell))
        for cell in ("more/mnist-open-batch-512", "table1/mnist-open")
    ]
    assert "five seeds each, it is {:.1f} against {:.1f}".format(*means) in text
