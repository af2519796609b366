"""The page on the comparison: its commands resolve, its links lead somewhere, its counts are those of the layers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import torch
from typer.main import get_command

import torchcaps
from torchcaps.cli.app import app
from torchcaps.eval import routing_traces
from torchcaps.train.studies import COMPARED_DATA

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
