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
    order = sorted(shares, key=shares.__getitem__)
    assert order[1:3] == ["self-attention", "average (R = 1)"]
    assert order[-1] == "k-means, Euclidean distance"
    between = f"{shares[order[1]]:.1f} and {shares[order[-2]]:.1f} %"
    assert f"k-means by distance is last with {shares[order[-1]]:.1f} %, and all others lie between {between}" in text
    assert {row["held out"] for row in rows.values()} == {"0.000"}
    sharpest = sorted(rows, key=lambda name: float(rows[name]["parents of a child"]))[:2]
    assert sharpest == [order[0], order[-1]]


def table_of(folder: str, networks: bool = False) -> dict[str, dict[str, str]]:
    """The rows of a table by title: those that are routings, or with ``networks`` all."""
    with (DOCS.parent / "records" / folder / "table.csv").open() as lines:
        return {row["routing"]: row for row in csv.DictReader(lines) if networks or "of its own" not in row["routing"]}


def in_order(folder: str) -> list[str]:
    rows = table_of(folder)
    return sorted(rows, key=lambda name: float(rows[name]["error in %"].split()[0]))


def test_the_orders_are_those_of_the_tables():
    text = " ".join(TEXT.split())
    digits, clothes, before, earlier = map(in_order, ("compare-mnist", "compare-fashion", "first-round", "rates-2e-3"))
    assert digits[:3] == ["self-attention", "leaky", "max-min"]
    assert set(digits[:5]) == set(earlier[:5])
    assert set(clothes[:3]) == {"self-attention", "dynamic", "leaky"}
    ordinals = dict(zip(("fifth", "eighth", "ninth"), (4, 7, 8), strict=True))
    for name, title, places in (("EM", "em", ("fifth", "ninth")), ("max-min", "max-min", ("eighth", "fifth"))):
        assert [order.index(title) for order in (clothes, before)] == [ordinals[place] for place in places]
        assert f"{name}, {places[0]}" in text
    for order in (digits, clothes, in_order("compare-coil20")):
        assert "k-means, Euclidean distance" in order[-3:]


def test_what_it_says_of_pairs_is_that_of_the_table():
    text = " ".join(TEXT.split())
    rows, order = table_of("compare-multimnist"), in_order("compare-multimnist")
    share = {name: f"{float(row['error in %']):.1f}" for name, row in rows.items()}
    assert order[:3] == ["self-attention", "leaky", "max-min"]
    assert f"with {share['self-attention']} % of the pairs wrong" in text
    assert f"leaky has {share['leaky']} and max-min {share['max-min']} %" in text
    assert set(order[3:7]) == {"dynamic", "fixed-point", "k-means, inner product", "inverted-attention"}
    assert f"inverted attention ({share[order[3]]} to {share[order[6]]} %)" in text
    assert rows["dynamic"]["errors of each seed"] == rows["fixed-point"]["errors of each seed"]
    assert f"One pass has {share['average (R = 1)']} %" in text
    assert set(order[8:11]) == {"average (R = 1)", "vb", "em"}
    assert order[11:] == ["attention", "k-means, Euclidean distance", "self-routing"]
    assert f"attention over the inputs ({share['attention']} %) and k-means by distance ({share[order[12]]} %)" in text
    assert f"Self-routing has {share['self-routing']} %" in text
    assert {row["epochs"] for row in rows.values()} == {f"{10_000 / 468:.2f}"}
    speed, memory = (
        {name: float(row[key].replace(",", "")) for name, row in rows.items()}
        for key in ("images/s", "peak memory in MiB")
    )
    fused = {"dynamic", "fixed-point", "normalized", "leaky", "k-means, inner product"}
    others = set(rows) - fused - {"average (R = 1)"}
    longer = {name: speed["average (R = 1)"] / speed[name] for name in rows}
    larger = {name: memory[name] / memory["average (R = 1)"] for name in rows}
    assert {larger[name] for name in fused - {"dynamic"}} == {1.0}
    assert memory["dynamic"] - memory["average (R = 1)"] < 70  # of the first run in a process
    low, high = min(longer[name] for name in fused), max(longer[name] for name in fused)
    assert f"took {low:.1f} to {high:.1f} times as long as one pass in the same memory" in text
    ends = [f"{end(part[name] for name in others):.1f}" for part in (longer, larger) for end in (min, max)]
    assert "the others {} to {} times as long in {} to {} times the memory".format(*ends) in text


def test_what_it_says_of_rates_is_that_of_the_records():
    text = " ".join(TEXT.split())
    tried: dict[str, dict[str, list[float]]] = {}
    pairs: dict[str, dict[str, dict[str, float]]] = {}
    for folder in ("tune", "finals"):
        with (DOCS.parent / "records/compare-mnist" / folder / "table.csv").open() as lines:
            for row in csv.DictReader(lines):
                setting, _, rate = row["settings"].rpartition("rate ")
                if "of its own" in row["routing"]:
                    continue
                if folder == "tune":
                    tried.setdefault(row["routing"], {}).setdefault(rate, []).append(float(row["error in %"]))
                else:
                    pairs.setdefault(row["routing"], {}).setdefault(setting, {})[rate] = float(row["error in %"])
    falls = {name: 100 * (1 - min(found["0.004"]) / min(found["0.001"])) for name, found in tried.items()}
    some = {name: fall for name, fall in falls.items() if 28 <= round(fall) <= 52}
    words = (
        f"falls by {min(some.values()):.0f} to {max(some.values()):.0f} % in {len(some)} of the {len(falls)} routings"
    )
    assert words in text
    ends = sorted(min(tried[name]["0.004"]) for name in some)[:10]
    assert f"at 4e-3 ten of these lie between {ends[0]:.2f} and {ends[-1]:.2f} %" in text
    both = [found for row in pairs.values() for found in row.values() if {"0.002", "0.004"} <= set(found)]
    as_good = sum(found["0.002"] <= found["0.004"] for found in both)
    assert f"as good as 4e-3, or better, in {as_good} of the {len(both)} rows" in text


def test_what_it_says_of_time_and_memory_is_that_of_the_tables():
    text = " ".join(TEXT.split())
    said = []
    for folder in ("compare-fashion", "compare-coil20"):
        rows = table_of(folder)
        speed, memory = (
            {name: float(row[key].replace(",", "")) for name, row in rows.items()}
            for key in ("images/s", "peak memory in MiB")
        )
        others = set(rows) - {"dynamic", "leaky", "average (R = 1)"}
        times = [speed["average (R = 1)"] / speed[name] for name in others]
        sizes = [memory[name] / memory["average (R = 1)"] for name in others]
        fused = [speed["average (R = 1)"] / speed[name] for name in ("dynamic", "leaky")]
        said.append([f"{number:.1f}" for number in (*fused, min(times), max(times), min(sizes), max(sizes))])
        said[-1].append(f"{speed['dynamic'] / speed['self-attention']:.1f}")
    ten, twenty = said
    assert ten[0] == ten[1]
    assert (
        "take {1} times as long as one pass; the others take {2} to {3} times as long and {4} to {5} times".format(*ten)
        in text
    )
    assert "is {} and {} for these two, {} to {} times the time and {} to {} times the memory".format(*twenty) in text
    assert f"it took {ten[-1]} times as long as `dynamic` with ten classes and {twenty[-1]} times with twenty" in text
    first, second = (
        {name: float(row["images/s"].replace(",", "")) for name, row in table_of(folder, networks=True).items()}
        for folder in ("first-round", "compare-mnist")
    )
    same_cost = ("average", "k-means, inner", "em", "vb", "matrix-capsules")  # only their rates were changed
    faster = max(second[name] / first[name] - 1 for name in first if name.startswith(same_cost))
    assert f"what ran in both was up to {100 * faster:.0f} % faster" in text


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
