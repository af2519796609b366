"""The report: complete, self-contained, readable by people and by programs that read aloud."""

from __future__ import annotations

import math
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import torchcaps
from small_runs import shared_run
from torchcaps.data import sample_digits
from torchcaps.data.source import Split
from torchcaps.eval import figures
from torchcaps.eval.examples import Examples
from torchcaps.eval.figures.style import short_names
from torchcaps.eval.report import make_report
from torchcaps.eval.report.comparison import run_labels, seed_groups
from torchcaps.eval.report.markup import facts_table, length_bars, table
from torchcaps.eval.report.measured import MeasuredRun, measure_run
from torchcaps.eval.runs import Run

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


@pytest.mark.parametrize(("count", "names"), [(3, ["circle", "square", "triangle"]), (10, ["3", "4", "5"])])
def test_bars_are_as_large_for_few_classes_and_leave_room_for_their_names(count, names):
    classes = ("circle", "square", "triangle", *map(str, range(3, count)))
    here = torch.zeros(count, dtype=torch.bool)
    bars = length_bars(torch.rand(count), classes, here, here)
    assert 'viewBox="0 0 120 55"' in bars
    assert re.findall(r">(\w+)</text>", bars)[:3] == names
    assert re.findall(r"<title>(\w+) ", bars) == list(classes)


def test_a_long_name_below_a_bar_is_shortened_in_its_middle():
    here = torch.zeros(2, dtype=torch.bool)
    bars = length_bars(torch.rand(2), ("normal without finding", "pneumonia"), here, here)
    assert re.findall(r">([^<]+)</text>", bars) == ["normal…nding", "pneumonia"]


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


LONG_NAMES = {
    2: ("normal chest X-ray without finding", "pneumonia (bacterial or viral)"),
    3: ("circle", "equilateral triangle", "square with rounded corners"),
    10: ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    40: tuple(f"person number {number:02} of all the faces" for number in range(40)),
}


@pytest.mark.parametrize("names", LONG_NAMES.values(), ids=map(str, LONG_NAMES))
@pytest.mark.parametrize("kind", ["confusion", "reconstruction", "pairs"])
def test_no_name_is_cut_or_printed_over_another(kind, names):
    J = min(len(names), 12)
    images = torch.rand(J, 1, 28, 28)
    if kind == "confusion":
        drawing = figures.confusion_figure(torch.eye(len(names)) * 9, names)
    elif kind == "reconstruction":
        drawing = figures.reconstruction_figure(images, images, names[:J])
    else:
        pairs = [(f"{name}, {names[0]}",) * 3 for name in names[:J]]
        drawing = figures.pairs_figure(images, images[:, None].expand(-1, 2, -1, -1, -1), pairs)
    check_texts(drawing)


def check_texts(drawing) -> None:
    """Every text lies inside the figure, and the corners of none inside another, turned as it is."""
    FigureCanvasAgg(drawing).draw()
    shown = [text for text in drawing.findobj(Text) if text.get_visible() and text.get_text()]
    assert len({text.get_text() for text in shown}) > 1
    boxes = [corners(text) for text in shown]
    width, height = drawing.canvas.get_width_height()
    for text, box in zip(shown, boxes, strict=True):
        assert box.min() > -1, text
        assert (box <= (width + 1, height + 1)).all(), text
    for place, box in enumerate(boxes):
        for other in range(len(boxes)):
            assert other == place or not overlap(box, boxes[other]), (shown[place], shown[other])


def corners(text: Text) -> np.ndarray:
    """``[4, 2]`` in pixels: the box of the text as if it were level, turned about the place that it hangs on."""
    turn = text.get_rotation()
    angle, mode = math.radians(turn), text.get_rotation_mode()
    around = text.get_window_extent()
    if turn % 90 == 0:
        return around.corners()[[0, 1, 3, 2]]
    text.set_rotation(0)
    level = text.get_window_extent()
    text.set_rotation(turn)
    assert mode == "anchor"
    pivot = np.array(text.get_transform().transform(text.get_unitless_position()))
    rotation = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return (level.corners()[[0, 1, 3, 2]] - pivot) @ rotation + pivot


def overlap(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two convex boxes share more than a pixel, by the theorem of separating axes."""
    for box in (one, other):
        for start, end in zip(box, np.roll(box, 1, axis=0), strict=True):
            along = end - start
            normal = np.array([-along[1], along[0]]) / max(np.hypot(*along), 1e-9)
            a, b = one @ normal, other @ normal
            if min(a.max(), b.max()) - max(a.min(), b.min()) <= 1:
                return False
    return True


def test_names_that_differ_in_the_middle_stay_different():
    assert short_names(["alpha", "beta"], 10) == ["alpha", "beta"]
    assert short_names(["pneumonia of children", "no finding"], 10) == ["pneum…dren", "no finding"]
    assert short_names(LONG_NAMES[40], 28)[:2] == ["…00…", "…01…"]


def two_class_run(folder, files: tuple[str, ...] | None) -> MeasuredRun:
    """A network that has learned nothing, on forty digits, with the names of their files."""
    model = torchcaps.create_model("small-cnn", channels=4, hidden=8, num_classes=2).eval()
    digits = sample_digits("test")
    split = Split(digits.images[:40], torch.arange(40) % 2, files=files)
    examples = Examples("folder:own", "test", LONG_NAMES[2], split)
    return MeasuredRun(Run(folder, str(folder)), model, examples, examples.evaluate(model), "run1")


def test_two_classes_have_a_section_and_mistakes_have_files(tmp_path):
    files = tuple(f"{LONG_NAMES[2][number % 2]}/scan {number}.png" for number in range(40))
    measured = two_class_run(tmp_path, files)
    made = make_report([measured])
    page = check_page(made.page)
    assert "One class against the other" in page.headings
    assert "roc" in made.drawings
    result = measured.result
    for positive in range(2):
        for name, share in result.two_class_metrics(positive).items():
            assert f"<td>{name}</td>" in made.page
            assert share is None or f"{share.count:,} of {share.total:,}" in made.page
    assert f"Area: {result.roc_curve(1)}" in made.page
    for position in result.wrong()[:24].tolist():
        assert f'<span class="soft">{files[position]}</span>' in made.page


def test_without_files_a_mistake_has_its_position(tmp_path):
    measured = two_class_run(tmp_path, None)
    first = int(measured.result.wrong()[0])
    assert f'<span class="soft">example {first}</span>' in make_report([measured]).page


def test_difference_colours_tell_bright_from_dark():
    zero, one = torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2)
    bright, dark = figures.difference_colours(one, zero)[0, :, 0, 0], figures.difference_colours(zero, one)[0, :, 0, 0]
    assert bright[0] > bright[2]
    assert dark[2] > dark[0]
    assert figures.difference_colours(one, one).abs().max() == 0
