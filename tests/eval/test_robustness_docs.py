"""What the manual says of the shipped networks under shifts is what the record holds."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("model", ["cnn-mnist", "capsnet-mnist"])
@pytest.mark.parametrize("file", ["docs/evaluation.md", "records/ledger.md"])
def test_the_quoted_errors_are_those_of_the_record(model, file):
    with (ROOT / "records/robustness-shipped/robustness.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["model"] == model and row["move"] == "shift"]
    found = sorted(round(float(row["error_percent"])) for row in rows if abs(float(row["amount"])) == 0.25)
    text = " ".join((ROOT / file).read_text().split())
    quoted = re.findall(r"(?:CNN is wrong about|CNN about|CapsNet(?: is wrong)? about) (\d+) to (\d+) %", text)
    assert [str(percent) for percent in found] in [list(pair) for pair in quoted]
    assert len(quoted) == 2


def test_the_small_networks_errors_are_those_of_their_record():
    with (ROOT / "records/place-cpu/robustness.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["move"] == "shift" and row["amount"] in ("-0.25", "0.25")]
    found = {row["model"]: [] for row in rows}
    for row in rows:
        found[row["model"]].append(round(float(row["error_percent"])))
    manual = " ".join((ROOT / "docs/evaluation.md").read_text().split())
    pairs = re.search(r"(\d+) to (\d+) % are wrong there in place of (\d+) to (\d+) %", manual)
    assert [int(number) for number in pairs.groups()] == [*sorted(found["shared-same"]), *sorted(found["own"])]
    ledger = (ROOT / "records/ledger.md").read_text()
    for model in ("own", "shared", "own-same", "shared-same"):
        low, high = sorted(found[model])
        assert f"{low} to {high} %" in ledger
