"""What is said of the last ideas for MNIST is what their records say."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest

from torchcaps.train.studies.results import StudyResult

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "records/what-is-left"
TEXT = (FOLDER / "README.md").read_text()
NINE = "nine shifted copies"
NUMBERS = {6: "six", 7: "seven", 8: "eight"}
NETWORKS = (
    *(f"writers/{cell}" for cell in ("shift", "shift-text", "stem-elastic", "stem-deform", "stem-deform-some")),
    *("writers/growing-deform", "what-is-left/ink", "what-is-left/cross-entropy", "what-is-left/cnn-turned"),
)


def results_of(cell: str) -> list[StudyResult]:
    return [StudyResult.read(file) for file in sorted((ROOT / "records" / cell).glob("seed*/result.json"))]


@pytest.mark.parametrize("cell", ["ink", "wide-ink", "cross-entropy", "trimmed", "cnn-turned"])
def test_a_row_is_that_of_its_runs(cell):
    runs = results_of(f"what-is-left/{cell}")
    assert {run.split for run in runs} == {"validation"}
    alone = ", ".join(str(run.errors) for run in runs)
    nine = ", ".join(str(run.extras[NINE][0]) for run in runs)
    assert f"(`{cell}`) | {alone} | {nine} |" in TEXT


def test_the_row_of_self_attention_joins_two_studies():
    first = next(run for run in results_of("writers/stem-self-attention") if run.seed == 0)
    others = results_of("what-is-left/self-attention")
    assert [run.seed for run in others] == [1, 2]
    nine = ", ".join(str(run.extras[NINE][0]) for run in others)
    assert f"| {', '.join(str(run.errors) for run in (first, *others))} | –, {nine} |" in TEXT


def test_nine_copies_are_worth_what_all_runs_say():
    runs = [
        run
        for folder in sorted(FOLDER.iterdir())
        if folder.is_dir()
        for run in results_of(f"what-is-left/{folder.name}")
    ]
    nine, alone = sum(run.extras[NINE][0] for run in runs), sum(run.errors for run in runs)
    assert f"have {nine} errors where the {len(runs)} runs have {alone}" in TEXT


def test_the_digits_that_most_networks_get_wrong_are_those_of_the_records():
    fewest, most, always = [], [], []
    for sixth in range(3):
        runs = [next(run for run in results_of(cell) if run.seed == sixth) for cell in NETWORKS]
        times = Counter(place for run in runs for place in run.wrong)
        fewest.append(min(run.errors for run in runs))
        most.append(sum(count > 4 for count in times.values()))
        always.append(sum(count == 9 for count in times.values()))
    lines = [f"sixth {n}: fewest {fewest[n]}, most {most[n]}, all {always[n]}" for n in range(3)]
    assert (FOLDER / "draw.txt").read_text().splitlines() == lines
    text = " ".join(TEXT.split())
    assert "the best makes {}, {} and {} errors; {}, {} and {} digits are wrong in most".format(*fewest, *most) in text
    assert "of the nine, and {}, {} and {} in all of them".format(*always) in text
    assert f"the {sum(always)} held-out digits that all nine get wrong" in text
    manual = " ".join((ROOT / "docs/reproduction.md").read_text().split())
    assert f"most are wrong about {sum(most)} of 30,000 held-out digits" in manual
    assert f"on each sixth add up to {sum(fewest)}; and all nine are wrong about {sum(always)}:" in manual


def test_what_a_choice_on_the_test_set_is_worth_to_others_is_that_of_their_logs():
    with (FOLDER / "published-logs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["seed"]) for row in rows] == list(range(30))
    last, best = (
        [round(10_000 - 100 * float(row[f"{which}_epoch_accuracy"])) for row in rows] for which in ("last", "best")
    )
    for words, errors in (("of the last epoch", last), ("of the epoch with the fewest test errors", best)):
        assert f"| {words} | {min(errors)} to {max(errors)} | {fmean(errors):.1f} |" in TEXT
    assert f"is worth {NUMBERS[round(fmean(last) - fmean(best))]} errors" in TEXT
    manual, readme = (" ".join((ROOT / name).read_text().split()) for name in ("docs/reproduction.md", "README.md"))
    assert f"{fmean(last):.1f} errors with the last weights and {fmean(best):.1f} at the epoch" in manual
    assert f"{fmean(last):.0f} errors with its last weights (thirty seeds), {fmean(best):.0f} at the epoch" in readme
    open_errors = [run.errors for run in results_of("table1/mnist-open")]
    assert f"`mnist-open` ({', '.join(map(str, open_errors))})" in TEXT
    assert f"`mnist-open` has {fmean(open_errors):.1f}" in manual
