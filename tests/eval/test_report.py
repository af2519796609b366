"""The report: complete, self-contained, readable by people and by programs that read aloud."""

from __future__ import annotations

import math
import re
import shutil
from html.parser import HTMLParser

import pytest
import torch

import torchcaps
from small_runs import shared_run
from torchcaps.eval import figures
from torchcaps.eval.report import make_report
from torchcaps.eval.report.comparison import run_labels, seed_groups
from torchcaps.eval.report.markup import facts_table, length_bars, table
from torchcaps.eval.report.measured import measure_run

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Checks that elements close in order, and collects what the tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.headings: list[str] = []
        self.silent_pictures = 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        self.ids += [facts["id"]] if "id" in facts else []
        self.addresses += [facts[key] for key in ("src", "href", "xlink:href", "data") if facts.get(key)]
        if tag == "img" and not facts.get("alt"):
            self.silent_pictures += 1
        if tag == "svg" and not (facts.get("role") == "img" and facts.get("aria-label")):
            self.silent_pictures += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append(data)


@pytest.fixture(scope="module")
def report(small_run):
    measured = measure_run(small_run)
    return measured, make_report([measured])


def check_page(text: str) -> Page:
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert page.silent_pictures == 0
    for address in page.addresses:
        assert address.startswith(("data:image/png;base64,", "#")), address
        assert not address.startswith("#") or address[1:] in page.ids
    for outside in re.findall(r"url\(([^)]*)\)|@import|<script|<link", text):
        assert outside.startswith("#"), outside
    assert set(re.findall(r"https?://[^\s\"'<]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    return page


def test_a_page_of_one_run(report):
    measured, made = report
    page = check_page(made.page)
    assert page.headings == [
        "small",
        "Training",
        "Which classes are confused",
        "Worst mistakes",
        "Reconstructions",
        "What the dimensions mean",
        "Confidence and routing",
    ]
    error = measured.result.error
    assert f"{error.percent:.2f} %" in made.page
    assert error.interval_text in made.page
    assert f"{measured.parameters:,}" in made.page
    assert "mnist-sample is a small sample" in made.page
    assert "Evaluated on mnist-sample (test)." in made.page
    assert made.page.count('class="bars"') == min(24, error.count)
    assert set(made.drawings) == {"curves", "confusion", "reconstructions", "dimensions", "calibration", "entropy"}


def test_light_dark_and_paper(report):
    _, made = report
    assert "@media (prefers-color-scheme: dark)" in made.page
    assert "@media print" in made.page
    drawings = re.findall(r"<svg.*?</svg>", made.page, re.DOTALL)
    ink = [text for text in drawings if "currentColor" in text]
    assert len(ink) >= 6  # charts are drawn in the colour of the page's text
    assert "#1f2328" not in "".join(drawings)
    assert "fill: #ffffff" not in "".join(drawings)


def test_figures_as_png(report):
    for drawing in report[1].drawings.values():
        assert figures.to_png(drawing, dots_per_inch=20).startswith(b"\x89PNG")


def test_the_same_run_gives_the_same_page(report):
    measured, made = report
    assert make_report([measured]).page == made.page


def test_pairs_show_each_digit_on_its_own(pairs_run):
    made = make_report([measure_run(pairs_run, pairs=200)])
    page = check_page(made.page)
    assert "Two digits told apart" in page.headings
    assert "Reconstructions" not in page.headings
    assert "Labels missed" in made.page
    labels = re.findall(r">([LRP]) \d, \d<", made.page)
    assert {"L", "R", "P"} == set(labels)
    assert len(labels) % 3 == 0


def test_runs_are_compared_and_seeds_are_summarised(small_run, tmp_path, tmp_path_factory):
    other = shutil.copytree(shared_run(tmp_path_factory.getbasetemp(), "other"), tmp_path / "other")
    text = (other / "recipe.toml").read_text().replace("steps = 20", "steps = 40")
    (other / "recipe.toml").write_text(text)  # the two differ in their seed alone now
    runs = [measure_run(path, slug=f"run{place}") for place, path in enumerate((small_run, other))]
    made = make_report(runs)
    page = check_page(made.page)
    assert "2 runs compared" in page.headings
    assert {"small", "other"} <= set(page.headings)
    (name, summary), *more = seed_groups(runs).items()
    assert (name, more) == ("small, seeds 0, 1", [])
    assert summary.mean == pytest.approx(sum(run.result.error.percent for run in runs) / 2)
    assert str(summary) in made.page
    assert "comparison" in made.drawings


def test_equal_names_are_told_apart(small_run, tmp_path):
    twin = shutil.copytree(small_run / "final", tmp_path / "elsewhere" / "final")
    runs = [measure_run(path) for path in (small_run / "final", twin)]
    assert run_labels(runs) == ["small/final", "elsewhere/final"]


def test_a_baseline_without_a_record(tmp_path):
    torchcaps.create_model("small-cnn", channels=4, hidden=8).save_pretrained(tmp_path / "cnn")
    made = make_report([measure_run(tmp_path / "cnn")])
    page = check_page(made.page)
    assert "without a record of its training" in made.page
    assert "What the dimensions mean" not in page.headings
    assert set(made.drawings) == {"confusion", "calibration"}


def test_names_from_outside_are_escaped():
    evil = "<script>alert(1)</script>"
    scores, here = torch.tensor([0.9, 0.1]), torch.tensor([True, False])
    for text in (
        table(("a", "b"), [(evil, evil)], evil),
        facts_table({evil: evil}),
        length_bars(scores, (evil, "b"), here, here),
    ):
        assert "<script" not in text
        assert "&lt;" in text


def test_many_classes_show_the_longest_and_the_true_ones():
    scores = torch.linspace(0, 0.9, 47)
    truth = torch.zeros(47, dtype=torch.bool)
    truth[3] = True
    bars = length_bars(scores, tuple(f"c{j:02}" for j in range(47)), truth, scores == scores.max())
    assert bars.count("<rect") == 12
    assert 'class="true"' in bars
    assert "c03" in bars
    assert 'class="named"' in bars


@pytest.mark.parametrize(("count", "names"), [(3, ["circle", "square", "triangle"]), (10, ["ci", "sq", "tr"])])
def test_bars_are_as_large_for_few_classes_and_leave_room_for_their_names(count, names):
    classes = ("circle", "square", "triangle", *map(str, range(3, count)))
    here = torch.zeros(count, dtype=torch.bool)
    bars = length_bars(torch.rand(count), classes, here, here)
    assert 'viewBox="0 0 120 55"' in bars
    assert re.findall(r">(\w+)</text>", bars)[:3] == names


def test_a_routing_that_decides_nothing_is_drawn_as_a_flat_line():
    axes = figures.entropy_figure(math.log(3) - torch.rand(3, 20) * 1e-4, 3).axes[0]
    low, high = axes.get_ylim()
    assert low < math.log(3) - 0.01 < math.log(3) < high


def test_any_class_name_can_be_drawn():
    names = ("$^$", "from $5 to $10", "三角")
    figure = figures.confusion_figure(torch.eye(3) * 9, names)
    assert figures.to_png(figure).startswith(b"\x89PNG")
    page = figures.to_svg(figure, "confusion", "names")
    assert all(name in page for name in names)


def test_a_matrix_of_many_classes_has_no_numbers():
    figure = figures.confusion_figure(torch.eye(47) * 9, tuple(f"class {j}" for j in range(47)))
    assert not figure.axes[0].texts
    small = figures.confusion_figure(torch.eye(3) * 9, ("a", "b", "c"))
    assert [text.get_text() for text in small.axes[0].texts] == ["9"] * 3


def test_difference_colours_tell_bright_from_dark():
    zero, one = torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
    bright, dark = figures.difference_colours(one, zero)[0, :, 0, 0], figures.difference_colours(zero, one)[0, :, 0, 0]
    assert bright[0] > bright[2]
    assert dark[2] > dark[0]
    assert figures.difference_colours(one, one).abs().max() == 0
