"""The figures of the README's first table are those of the records that its rows point to."""

from __future__ import annotations

import csv
import json
import re
import statistics
from pathlib import Path

import pytest
from scipy.stats import chi2

from torchcaps.eval import difference_of_means, summarize_seeds
from torchcaps.train.studies.facts import settled_median
from torchcaps.train.studies.results import StudyResult

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\|[^|]+\|[^|]+\|([^|]+)\| (\d+) \| \[runs\]\((records/[\w/-]+)\) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "README.md").read_text().split("## Ten lines of Python")[0])


def test_the_table_is_there():
    assert len(ROWS) >= 13


@pytest.mark.parametrize(("figure", "seeds", "folder"), ROWS)
def test_a_figure_is_that_of_its_records(figure, seeds, folder):
    check_figure(figure, seeds, folder)


def check_figure(figure, seeds, folder):
    results = [StudyResult.read(file) for file in sorted((ROOT / folder).glob("seed*/result.json"))]
    found = summarize_seeds([result.error.percent for result in results])
    assert {result.split for result in results} == {"test"}
    assert len(results) == int(seeds)
    spread = f" ± {found.deviation:.2f}" if len(results) > 1 else ""
    assert figure.strip(" *") == f"{found.mean:.2f}{spread}"


HEADER = re.compile(
    r"^# expect: +([\d.]+(?: ± [\d.]+)?) %[^(]*\((\d+) seeds?[;,][^)]*(records/\w+/[\w-]+)\)", re.MULTILINE
)
EXPECTED = [
    (file.stem, *found.groups())
    for file in sorted((ROOT / "src/torchcaps/recipes").glob("*.toml"))
    for found in HEADER.finditer(file.read_text())
]


def test_recipes_say_what_to_expect():
    assert {"mnist-official", "mnist-best", "multimnist-best", "fashion"} <= {recipe for recipe, *_ in EXPECTED}
    assert len(EXPECTED) >= 9


@pytest.mark.parametrize(("recipe", "figure", "seeds", "folder"), EXPECTED)
def test_what_a_recipe_says_to_expect_is_that_of_its_records(recipe, figure, seeds, folder):
    check_figure(figure, seeds, folder)


def test_the_figures_on_clothes_are_those_of_the_records():
    words = " ".join((ROOT / "README.md").read_text().split())
    means, seeds = [], []
    for cell in ("fashion-small-cnn", "fashion"):
        files = list((ROOT / "records/more" / cell).glob("seed*/result.json"))
        means.append(f"{statistics.fmean(StudyResult.read(file).error.percent for file in files):.1f}")
        seeds.append({2: "two", 5: "five"}[len(files)])
    assert f"({means[0]} against {means[1]} %, {seeds[0]} seeds and {seeds[1]})" in words


def test_the_counts_on_single_digits_are_those_of_the_records():
    words = " ".join((ROOT / "README.md").read_text().split())

    def counts(cell):
        files = (ROOT / "records/table1" / cell).glob("seed*/result.json")
        found = [StudyResult.read(file).errors for file in files]
        return f"{statistics.fmean(found):.0f}", min(found), max(found)

    assert "641 epochs, makes {} errors in 10,000 on average ({} to {}; two".format(*counts("mnist-official")) in words
    assert "makes {} on average ({} to {})".format(*counts("mnist-best")) in words
    assert "with a stem and elastic pulls {} ({} to {})".format(*counts("mnist-open")) in words
    rows = ("r1", "r1-reconstruction", "r3", "best", "official", "open")
    means = sorted(int(counts(f"mnist-{row}")[0]) for row in rows)
    assert f"all rows of CapsNet have {means[0]} to {means[-1]} errors on average" in words


def test_the_figures_on_pairs_are_those_of_the_records():
    words = " ".join((ROOT / "README.md").read_text().split())

    def percent(cell):
        return f"{statistics.fmean(result.error.percent for result in more_results(cell, 'table1')):.1f}"

    baseline, short, long = (percent(f"multimnist-{cell}") for cell in ("baseline", "r3", "r3-long"))
    assert f"baseline ({baseline} %; in the paper 8.1) is ahead of its CapsNet ({short} %)" in words
    assert f"after 60 million, CapsNet is at {long} %, below the paper's 5.2" in words
    assert float(short) > float(baseline) > float(long)


def test_the_figures_of_routings_on_pairs_are_those_of_the_records():
    words = " ".join((ROOT / "README.md").read_text().split())

    def percent(routing):
        (file,) = (ROOT / "records/compare-multimnist" / routing).glob("seed*/result.json")
        return f"{StudyResult.read(file).error.percent:.1f}"

    shares = [percent(routing) for routing in ("self-attention", "leaky", "dynamic", "average", "em")]
    assert "self-attention leaves {} % wrong, leaky {}, dynamic {}, one pass {}, EM {}.".format(*shares) in words


def test_the_figures_on_cifar_are_those_of_the_records():
    readme, manual = (" ".join((ROOT / name).read_text().split()) for name in ("README.md", "docs/reproduction.md"))
    recipe = (ROOT / "src/torchcaps/recipes/cifar10-official.toml").read_text()
    seven = more_results("cifar10")
    (together,) = more_results("cifar10-ensemble")
    assert {result.steps for result in seven} == {30_000}  # of 300,000
    found = summarize_seeds([result.error.percent for result in seven])
    alone, joined = f"{found.mean:.2f} ± {found.deviation:.2f} %", f"{together.error.percent:.2f} %"
    assert f"steps: {alone} by one network (seven seeds), {joined} by the seven together" in readme
    assert f"{joined} by the seven" in recipe
    ends = (f"{end(result.error.percent for result in seven):.2f}" for end in (min, max))
    assert "{} to {} % wrong, together {}".format(*ends, joined) in manual
    in_all = set.intersection(*(set(result.wrong) for result in seven))
    assert f"{len(in_all):,} of the 10,000 test pictures are wrong in all of them" in manual
    files = (ROOT / "records/more/cifar10").glob("seed*/metrics.jsonl")
    last = [json.loads(file.read_text().splitlines()[-1]) for file in files]
    ends = (round(100 * end(record["error"] for record in last)) for end in (min, max))
    assert "{} to {} % of their own last batches".format(*ends) in manual
    seconds = min(result.training_seconds for result in seven)
    assert f"would take {seconds * 10 / 60:.0f} minutes a network" in manual
    assert f"time:     {seconds:.0f} s for a tenth" in recipe


def test_the_rows_on_pairs_are_those_of_the_records():
    words = (ROOT / "docs/reproduction.md").read_text()
    cells = {
        "CapsNet with a stem, self-attention": more_results("multimnist-stem-self-attention"),
        "CapsNet with a stem, R = 3": more_results("multimnist-best", "table1"),
        "CNN of similar size": more_results("multimnist-small-cnn"),
        "CapsNet with a stem, R = 1": more_results("multimnist-stem-r1"),
    }
    for name, results in cells.items():
        found = summarize_seeds([result.error.percent for result in results])
        figure = f"{found.mean:.2f}" + (f" ± {found.deviation:.2f}" if len(results) > 1 else "")
        assert f"| {name} | {figure} | {len(results)} | " in words
        fastest = min(result.training_seconds for result in results)  # the others shared the GPU
        assert re.search(rf"\| {name} \| [^|]+\| \d \| {fastest:.0f} s \|", words)
    cells["baseline"] = more_results("multimnist-baseline", "table1")
    percents = {name.split(", ")[-1]: [result.error.percent for result in seeds] for name, seeds in cells.items()}
    three, one, cnn, baseline = (percents[name] for name in ("R = 3", "R = 1", "CNN of similar size", "baseline"))
    assert f"the worst seed of R = 3 ({max(three):.2f}) is ahead of the best of R = 1 ({min(one):.2f})" in words
    assert f"the worst seed of R = 1 ({max(one):.2f}) is ahead of its best ({min(baseline):.2f})" in words
    assert f"in each of its four seeds ({min(cnn):.2f} to {max(cnn):.2f})" in words
    assert max(three) < min(*one, *cnn)
    assert max(one) < min(baseline)
    files = sorted((ROOT / "records/more/multimnist-stem-self-attention").glob("seed*/metrics.jsonl"))
    last = [100 * json.loads(file.read_text().splitlines()[-1])["error"] for file in files]
    others = sorted(last[:3] + last[4:])
    assert f"({last[3]:.2f} against {others[0]:.2f} to {others[-1]:.2f} %)" in words
    assert max(percents["self-attention"]) == percents["self-attention"][3]
    difference, (low, high) = difference_of_means(one, cnn)
    welch = f"{difference:.2f} points less on average, with a 95 % interval by Welch of {low:.2f} to {high:.2f}"
    assert welch.replace("-", "−") in words.replace("\n", " ")


def more_results(cell, study="more"):
    return [StudyResult.read(file) for file in sorted((ROOT / f"records/{study}" / cell).glob("seed*/result.json"))]


def test_what_a_choice_of_the_checkpoint_is_worth_is_that_of_the_record():
    words = " ".join((ROOT / "docs/reproduction.md").read_text().split())
    (file,) = (ROOT / "records/selection/mnist-official").glob("seed*/result.json")
    result = StudyResult.read(file)
    counts = [wrong for name, (wrong, _) in result.extras.items() if name.startswith("step ")]
    late = counts[len(counts) // 2 :]
    ends = f"{result.errors} errors with its last weights, {statistics.fmean(late):.1f} on average over the second half"
    assert ends in words
    assert f"and {min(counts)}, the paper's figure, at the lowest of {len(counts)} checkpoints" in words
    assert f"at most {max(late) / 100:.2f} % in the second half" in words
    assert f"which ends with {error_counts('records/table1/mnist-official')[1]}" in words


def test_what_is_left_of_the_ablation_in_long_runs_is_that_of_the_records():
    words = " ".join((ROOT / "README.md").read_text().split())
    long = sorted((ROOT / "records/ablation-long").glob("*/seed*/result.json"))
    short = [file for run in long for file in (ROOT / "records/ablation" / run.parts[-3]).glob("seed*/result.json")]
    ends = [end([StudyResult.read(file).errors for file in files]) for files in (long, short) for end in (min, max)]
    assert "({} to {} errors, one seed each, where it had been {} to {})".format(*ends) in words


def test_the_affine_figures_are_those_of_the_records():
    quoted = re.search(
        r"\[([\d.]+) against ([\d.]+) % wrong\]\([^)]*\), ([\d.]+) % with the stem", (ROOT / "README.md").read_text()
    )
    assert list(quoted.groups()) == [affine_percent(cell) for cell in ("capsnet", "twin", "stem")]


AWAY = "away from the edge"
PLACE = (
    (r"it is ([\d.]+) against ([\d.]+) %", ("capsnet", "twin"), AWAY),
    (r"CapsNet is at ([\d.]+) % anywhere", ("shared-same",), None),
    (r"the two have ([\d.]+) and ([\d.]+) %", ("capsnet-anywhere", "twin-anywhere"), None),
)


@pytest.mark.parametrize(("words", "cells", "extra"), PLACE)
def test_what_decides_affine_robustness_is_that_of_the_records(words, cells, extra):
    quoted = re.search(words, " ".join((ROOT / "README.md").read_text().split()))
    assert list(quoted.groups()) == [affine_percent(cell, extra) for cell in cells]


@pytest.mark.parametrize(
    ("row", "cell"),
    [
        ("CapsNet (anywhere: 4 seeds)", "capsnet"),
        ("– padded", "same"),
        ("– padded, transformations shared by positions", "shared-same"),
        ("– trained up to the edge", "capsnet-anywhere"),
        ("CNN of as many parameters (anywhere: 4 seeds)", "twin"),
        ("– trained up to the edge", "twin-anywhere"),
    ],
)
def test_the_manual_has_the_same_figures(row, cell):
    manual = (ROOT / "docs" / "evaluation.md").read_text()
    assert f"| {row} | {affine_percent(cell)} % | {affine_percent(cell, AWAY)} % |\n" in manual


def test_the_price_of_sharing_is_that_of_the_curves():
    with (ROOT / "records/affine/scale.csv").open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["factor"] == "1.4"]
    found = {row["cell"]: round(float(row["error_percent_mean"])) for row in rows}
    shared, low, high = found.pop("shared-same"), min(found.values()), max(found.values())
    words = f"it is wrong on {shared} % of the digits, the others on {low} to {high} %"
    assert words in (ROOT / "docs/evaluation.md").read_text()


def affine_percent(cell, extra=None):
    results = [StudyResult.read(file) for file in (ROOT / "records/affine" / cell).glob("seed*/result.json")]
    shares = (
        [result.extra(extra) for result in results if extra in result.extras] if extra else [r.error for r in results]
    )
    return f"{summarize_seeds([share.percent for share in shares]).mean:.1f}"


def test_the_speed_of_matrix_capsules_is_that_of_its_logs():
    folders = [f"records/{folder}/matrix-capsules/seed2" for folder in ("first-round", "compare-mnist")]
    medians = [settled_median(ROOT / folder / "metrics.jsonl", "images_per_second") for folder in folders]
    words = "at **{:,.0f}** and {:,.0f} images a second".format(*(round(median, -2) for median in medians))
    assert words in (ROOT / "README.md").read_text()
    manual = (ROOT / "docs/routing.md").read_text()
    for folder, median in zip(folders, medians, strict=True):
        assert f"{128_000 / median:.1f} ms, {round(median, -2):,.0f} images/s" in manual
        assert f"(../{folder})" in manual


COMPARED = {
    "self-attention routing make": ("leaky", "max-min", "self-attention"),
    "in 10,000, one pass without iterations": ("average",),
    ", variational Bayes": ("vb",),
    ", EM": ("em",),
    "and these make": ("dynamic",),
    "attention over the inputs": ("attention",),
}


@pytest.mark.parametrize(("words", "rows"), COMPARED.items())
def test_the_routings_compared_are_those_of_the_records(words, rows):
    files = [file for row in rows for file in (ROOT / "records/compare-mnist" / row).glob("seed*/result.json")]
    results = [StudyResult.read(file) for file in files]
    assert {result.split for result in results} == {"test"}
    assert len(results) == 3 * len(rows)
    counts = [result.errors for result in results]
    assert f"{words} {min(counts)} to {max(counts)}" in " ".join((ROOT / "README.md").read_text().split())


def test_what_the_choice_of_iterations_is_worth_is_that_of_the_records():
    words = " ".join((ROOT / "README.md").read_text().split())
    tried = {place: error_counts(f"records/compare-mnist/finals/dynamic.{place}") for place in (2, 5, 6)}
    assert [min(tried[6]), min(tried[2] + tried[5])] == [
        int(count) for count in re.findall(r"by (\d+) errors against (\d+)", words)[0]
    ]
    low, *_, high = sorted(set(error_counts("records/first-round/dynamic")))
    assert f"[three make {low} or {high}](records/first-round/table.md)" in words


def error_counts(folder):
    return [StudyResult.read(file).errors for file in sorted((ROOT / folder).glob("seed*/result.json"))]


def test_the_choices_by_writers_are_those_of_the_records():
    text = (ROOT / "docs/reproduction.md").read_text().split("### Digits of other writers")[1].split("## Our own")[0]
    errors = {
        cell: [
            StudyResult.read(file).errors for file in sorted((ROOT / "records/writers" / cell).glob("*/result.json"))
        ]
        for cell in ("shift", "shift-text", "stem-elastic", "stem-deform", "stem-deform-some", "growing-deform")
    }
    assert {len(seeds) for seeds in errors.values()} == {3}
    mean = {cell: f"{statistics.mean(seeds):.1f}" for cell, seeds in errors.items()}
    assert f"{mean['stem-elastic']} errors on average with shifts and elastic pulls, {mean['stem-deform']} with" in text
    assert f"{mean['stem-deform-some']} for three of four, {mean['growing-deform']}\nfor all" in text
    assert f"the paper's network has {mean['shift']}, by the code's" in text
    assert mean["shift-text"] == mean["shift"]

    def two(cell):
        seeds = [ROOT / "records/writers" / cell / f"seed{seed}" / "result.json" for seed in (0, 1)]
        return "{} and {}".format(*(StudyResult.read(file).errors for file in seeds))

    assert f"left {two('stem-strong')} of 10,000 digits wrong" in text
    assert f"reads by a cubic: {two('stem-deform-more')}" in text
    assert f"from {two('stem-gentle')} to {two('stem-deform')}, that" in text
    assert f"network from {two('gentle')} to {two('deform')}." in text
    drawn = (ROOT / "records/writers/draw.txt").read_text()
    assert "0.50 as they are, 0.82 affine, then elastic; 0.62 deform; 83 digits" in drawn
    assert "28 of the 83 held-out digits" in text


def test_the_writers_of_mnist_are_those_of_the_log():
    log = (ROOT / "records/mnist-order-cpu/log.txt").read_text()
    readme = (ROOT / "records/mnist-order-cpu/README.md").read_text()
    for title, row in (("any digits", "any digits, so"), ("digits that follow each other", "digits that follow")):
        found = re.findall(rf"held out: {title}, fold \d: (\d+) of", log)
        assert len(found) == 3
        assert re.search(rf"\| {row}[^|]*\| {', '.join(found)} \|", readme)
    for split, name in (("train", "training set"), ("test", "test set")):
        for trait in ("slant", "thickness"):
            values = re.search(rf"{split}: correlation of the {trait} .*: (.*)", log)[1].split(", ")
            shown = [values[place] for place in (0, 1, 2, 3, 4, 6, 7, 8, 9)]
            row = re.search(rf"\| {name}, {trait} \| (.*) \|", readme)[1].split(" | ")
            assert [float(value.replace("−", "-")) for value in row] == list(map(float, shown))


def test_the_counts_of_branches_are_those_of_their_log():
    log = (ROOT / "records/branches/log.txt").read_text()
    readme = (ROOT / "records/branches/README.md").read_text()
    for cell in ("base", "gentle", "turn-elastic", "shift"):
        numbers = re.search(rf"/{cell}/seed0: (\d+) \(0,\):(\d+) \(1,\):(\d+) \(2,\):(\d+).* added:(\d+)", log)
        together, *alone, added = numbers.groups()
        assert f"(`{cell}`) | {' | '.join([*alone, together, added])} |" in readme
    cells = ("base", "gentle", "turn-elastic", "shift", "small-cnn-gentle")
    *capsules, cnn = (set(StudyResult.read(ROOT / "records/branches" / cell / "result.json").wrong) for cell in cells)
    always = set.intersection(*capsules)
    assert f"{len(always)} digits are wrong in all four CapsNets, {len(always & cnn)} of\nthese in the CNN" in readme


def test_how_likely_the_papers_spread_is_follows_from_ours():
    files = (ROOT / "records/table1/mnist-best").glob("seed*/result.json")
    ours = statistics.stdev(StudyResult.read(file).error.percent for file in files)
    trials, theirs = 3, 0.005
    chance = chi2.cdf((trials - 1) * (theirs / ours) ** 2, trials - 1)
    words = " ".join((ROOT / "docs/reproduction.md").read_text().split())
    assert f"about once in {round(1 / chance, -1):.0f} times" in words


def test_how_fast_the_relatives_of_dynamic_routing_are_is_that_of_the_record():
    medians: dict[tuple[str, str, str], list[float]] = {}
    with (ROOT / "records/routing-family/timings.csv").open() as lines:
        for row in csv.DictReader(lines):
            medians.setdefault((row["routing"], row["case"], row["variant"]), []).append(float(row["median_s"]))
    words = " ".join((ROOT / "docs/performance.md").read_text().split())
    relatives = {routing for routing, *_ in medians} - {"dynamic", "average", "self-attention"}
    for chosen, runs in ((relatives, "seven"), ({"average"}, "six")):
        ranges = []
        for case in ("training", "inference"):
            ratios = [
                votes / one_op
                for name in chosen
                for votes, one_op in zip(medians[name, case, "votes"], medians[name, case, "one op"], strict=True)
            ]
            assert len(ratios) == len(chosen) * {"six": 6, "seven": 7}[runs]
            ranges.append(f"{min(ratios):.1f} to {max(ratios):.1f}")
        assert "trains {} and infers {} times as fast".format(*ranges) in words
        assert f"over {runs}" in words
    (train, infer) = (
        medians["self-attention", case, "votes"][0] / medians["self-attention", case, "one op"][0]
        for case in ("training", "inference")
    )
    assert f"joined last, trains {train:.1f} and infers {infer:.1f} times as fast, in one run" in words
