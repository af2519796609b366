"""The page on the comparison: its commands resolve, its links lead somewhere, its counts are those of the layers."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path
from statistics import fmean

import torch
from typer.main import get_command

import torchcaps
from torchcaps.cli.app import app
from torchcaps.eval import routing_traces
from torchcaps.train.studies import COMPARED_DATA, Settings, StudyResult

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "comparison.md").read_text()


def test_commands_data_and_links_exist():
    known = {option for parameter in get_command(app).commands["compare"].params for option in parameter.opts}
    lines = re.findall(r"^\$ torchcaps compare (.+)$", TEXT, flags=re.MULTILINE)
    assert len(lines) == 7
    for line in lines:
        words = shlex.split(line)
        assert {word for word in words if word.startswith("--")} <= known
        assert words[words.index("--data") + 1] in COMPARED_DATA
    assert set(re.findall(r"^\| `([a-z0-9]+)` \| (?:the|\d)", TEXT, flags=re.MULTILINE)) == set(COMPARED_DATA)
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (DOCS / link).exists(), link


def errors_of(folder: str) -> list[int]:
    files = sorted((DOCS.parent / "records" / folder).glob("seed*/result.json"))
    return [StudyResult.read(file).errors for file in files]


def test_what_it_says_of_the_two_rounds_is_that_of_the_records():
    text = " ".join(TEXT.split())
    rows = Settings.read(DOCS.parent / "records/compare-mnist/settings.json").trials
    best = [sorted(round(100 * error) for error in errors.values())[:2] for errors in rows.values()]
    close = sum(second - first <= 5 for first, second in best)
    assert f"the two best settings of {close} of the {len(rows)} rows lie within 5 errors" in text
    ours, before = (
        ["{}, {} and {}".format(*errors_of(f"{folder}/{row}")) for row in ("dynamic", "average")]
        for folder in ("compare-mnist", "first-round")
    )
    assert f"which then made {ours[0]} errors" in text
    assert f"three iterations had made [{before[0]}]" in text
    assert f"8e-3, with {ours[1]} errors, where the 1.6e-2 of the first round had given {before[1]}" in text
    finals = [errors_of(f"compare-mnist/finals/dynamic.{place}") for place in (6, 5)]
    assert "({} errors, with three {})".format(*(round(fmean(errors)) for errors in finals)) in text


def test_what_it_says_of_novel_sides_is_that_of_the_records():
    with (DOCS.parent / "records/compare-coil20/table.csv").open() as lines:
        rows = {row["routing"]: row for row in csv.DictReader(lines)}
    shares = {name: float(row["error in %"]) for name, row in rows.items()}
    intervals = {name: [float(end) for end in row["95 % interval"].split(" … ")] for name, row in rows.items()}
    text = " ".join(TEXT.split())
    assert min(shares, key=shares.__getitem__) == "self-routing"
    assert f"is first with {shares['self-routing']:.1f} % of the views wrong" in text
    behind = sum(low > intervals["self-routing"][1] for low, _ in intervals.values())
    assert (
        f"its interval below those of {['none', 'one', 'two', 'three', 'four', 'five', 'six'][behind]} others" in text
    )
    assert f"k-means by distance has {max(shares.values()):.1f} %" in text
    assert {row["held out"] for row in rows.values()} == {"0.000"}


def test_parameters_are_those_of_the_layers():
    I, J, P, D = 12, 5, 3, 4
    extra = {
        "dynamic": J * D,
        "leaky": J * D,
        "fixed-point": J * D,
        "normalized": J * D,
        "max-min": J * D,
        "attention": J * D,
        "average": J * D,
        "k-means": 0,
        "em": 2 * J,
        "vb": 2 * J,
        "self-routing": I * J * P,
        "inverted-attention": 3 * D + 1,
        "self-attention": I * J,
    }
    assert set(extra) == set(torchcaps.list_routings())
    for name, count in extra.items():
        layer = torchcaps.nn.CapsuleLinear(I, J, P, D, routing=name)
        assert sum(parameter.numel() for parameter in layer.parameters()) - layer.weight.numel() == count, name
        assert f"`{name}`" in TEXT


def test_votes_of_matrix_capsules_are_as_many_as_the_manual_says():
    model = torchcaps.create_model("matrix-capsules", A=64, B=8, C=16, D=16).eval()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \| ([\d,]+) \|", (DOCS / "routing.md").read_text(), re.M)
    traces = routing_traces(model, torch.rand(1, 1, 28, 28))
    assert [row[0] for row in rows] == list(traces)
    for name, *numbers in rows:
        positions, children, parents, votes = (int(number.replace(",", "")) for number in numbers)
        assert traces[name].coefficients.shape[1:] == (positions, children, parents)
        assert votes == 128 * positions * children * parents * 16
