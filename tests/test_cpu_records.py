"""What the READMEs of small experiments on a CPU say is what their logs say."""

from __future__ import annotations

import json
import re
import statistics
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_small_networks_with_the_choices_of_the_text_are_those_of_their_logs():
    folder = ROOT / "records/preset-cpu"
    rows = re.findall(
        r"^\| `([\w-]+)`: [^|]+\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", (folder / "README.md").read_text(), re.M
    )
    assert [name for name, *_ in rows] == [
        "official",
        "scale-and-start",
        "text",
        "text-rate-4e-3",
        "clothes-official",
        "clothes-text",
    ]
    for name, rate, last, held_out in rows:
        log = [json.loads(line) for line in (folder / name / "metrics.jsonl").read_text().splitlines()]
        batches = [record for record in log if record["kind"] == "train"]
        recipe = tomllib.loads((folder / name / "recipe.toml").read_text())
        assert recipe["optimizer"]["lr"] == float(rate)
        assert f"{100 * batches[-1]['error']:.2f}" == last
        assert (log[-1]["kind"], f"{100 * log[-1]['error']:.2f}") == ("validation", held_out)


def test_the_counts_with_fractions_of_a_pixel_are_those_of_their_logs():
    folder = ROOT / "records/augmentation-cnn"
    rows = re.findall(r"^\| [^|]+\| (\d+) \| (\d+) \|$", (folder / "README.md").read_text(), re.M)
    for name, row in zip(("shift", "fraction", "half-pixel"), rows, strict=True):
        for seed, count in enumerate(row):
            log = (folder / "fractions" / f"{name}-{seed}" / "metrics.jsonl").read_text().splitlines()
            last = json.loads(log[-1])
            assert (last["kind"], round(last["error"] * last["examples"])) == ("validation", int(count))


def test_the_counts_of_taught_networks_are_those_of_their_log():
    folder = ROOT / "records/distillation-cpu"
    text, log = ((folder / name).read_text() for name in ("README.md", "log.txt"))

    def counts(words):
        return ", ".join(re.findall(rf"^{words}: (\d+) of 10,000", log, re.M))

    rows = {
        "CapsNet with a stem": counts(r"stem seed \d alpha 0.0 teachers 0"),
        "CapsNet of the paper's form": counts(r"caps seed \d alpha 0.0 teachers 0"),
        "CNN": counts(r"cnn seed \d alpha 0.0 teachers 0"),
        "with a stem, seeds 2 and 3, half of the loss from the three kinds together": counts(
            r"three kinds stem seed \d alpha 0.5 teachers 3"
        ),
        "with a stem, seed 2, half of the loss from two of its own kind": counts(
            r"own kind stem seed \d alpha 0.5 teachers 2"
        ),
        "with a stem, seed 2, taught by the three kinds alone": counts(
            r"three kinds stem seed \d alpha 1.0 teachers 3"
        ),
    }
    together = re.search(r"^stem\+stem (\d+) stem\+cnn (\d+) stem\+caps \d+ three kinds (\d+) six (\d+)$", log, re.M)
    joined = ("two with a stem", "one with a stem and the CNN", "one of each of the three kinds", "all six")
    rows |= {f"{words} together": count for words, count in zip(joined, together.groups(), strict=True)}
    assert dict(re.findall(r"^\| ([^|]+) \| ([\d, ]+) \|$", text, re.M)) == rows


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("deform-cpu", ("affine", "affine, then elastic", "deform without pulls", "deform")),
        ("until-cpu", [f"deform {how}{end}" for how in ("15°, 2", "20°, 3") for end in ("", ", until 0.8")]),
        ("drawn-before-cpu", [f"the digit as it was {which}" for which in ("shown", "before")]),
    ],
)
def test_the_counts_with_few_digits_are_those_of_their_log(folder, names):
    log = (ROOT / "records" / folder / "log.txt").read_text()
    rows = re.findall(r"\| (\d+, \d+, \d+) \| ([\d.]+) \|", (ROOT / "records" / folder / "README.md").read_text())
    found = [re.findall(rf"^{name}, seed \d: (\d+) of 9,800", log, re.MULTILINE) for name in names]
    assert rows == [(", ".join(counts), f"{statistics.mean(map(int, counts)):.1f}") for counts in found]


def test_the_counts_with_a_part_of_the_digits_are_those_of_their_log():
    folder = ROOT / "records/fewer-digits-cpu"
    text, log = ((folder / name).read_text() for name in ("README.md", "log.txt"))

    def counts(words):
        found = re.findall(rf"^{words}, fold \d: (\d+) of 10,000$", log, re.MULTILINE)
        assert len(found) == 3
        return f"{', '.join(found)} | {statistics.mean(map(int, found)):.1f}"

    assert f"| 50,000, all of them | {counts('all 50,000')} | | |" in text
    for number in ("25,000", "12,500", "6,250"):
        writers, digits = (counts(f"{number}, {words}") for words in ("fewer writers", "fewer digits of each"))
        assert f"| {number} | {writers} | {digits} |" in text
