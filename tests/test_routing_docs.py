"""The Python of docs/routing.md runs as it stands there, and the links of both routing pages lead somewhere."""

import csv
import re
from pathlib import Path

import pytest

import torchcaps
from torchcaps.nn.routing import registry

DOCS = Path(__file__).parent.parent / "docs"


def test_snippets_run(monkeypatch, capsys):
    monkeypatch.setattr(registry, "_ROUTINGS", dict(registry._ROUTINGS))
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / "routing.md").read_text(), flags=re.DOTALL)
    assert len(snippets) == 5
    names: dict[str, object] = {}
    for snippet in snippets:  # each goes on where the one before ended
        exec(compile(snippet, "docs/routing.md", "exec"), names)
    assert names["report"].passed, str(names["report"])
    assert "by_length" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["routing.md", "clustering.md"])
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", (DOCS / page).read_text())
    assert links
    for link in links:
        assert (DOCS / link).exists(), link


def test_every_routing_is_in_the_manual():
    text = (DOCS / "routing.md").read_text()
    for name in torchcaps.list_routings():
        assert f"| `{name}` |" in text


def test_how_close_the_defaults_were_is_that_of_the_record():
    root = Path(__file__).parents[1]
    with (root / "records/compare-mnist/finals/table.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    gaps = {}
    for title, chosen in (
        ("vb", "temperature 1.5"),
        ("k-means, inner product", "temperature 10.0"),
        ("em", "temperature 10.0"),
    ):
        found = {True: [], False: []}
        for row in rows:
            if row["routing"] == title:
                found[chosen in row["settings"]].append(int(row["errors of each seed"].split()[0]))
        gaps[title] = min(found[False]) - min(found[True])
    text = " ".join((DOCS / "routing.md").read_text().split())
    assert gaps["vb"] == gaps["k-means, inner product"]
    assert f"by inner product by {gaps['vb']} error in 10,000 and `em` by {gaps['em']}, one seed each" in text
    matrix = [row["settings"] for row in rows if row["routing"].startswith("matrix-capsules")]
    assert all("iterations 2" in settings for settings in matrix)  # three were not tried again


def test_the_table_of_iterations_is_that_of_the_record():
    root = Path(__file__).parents[1]
    with (root / "records" / "routing-share" / "share.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    said = re.findall(r"^\| (\d+) \| (.+) \|$", (root / "docs" / "routing.md").read_text(), flags=re.MULTILINE)
    assert len(said) == 5
    for iterations, cells in said:
        measured = [row for row in rows if row["iterations"] == iterations]
        assert [row["network"] for row in measured] == ["capsnet-mnist", "capsnet-multimnist"]
        expected = [
            text
            for row in measured
            for text in (row["errors"], f"{float(row['longest']):.2f}", f"{float(row['parents']):.2f}")
        ]
        assert cells.split(" | ") == expected
