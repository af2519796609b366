"""The parts of a run's report: each a heading, a word on how to read it, and its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from torchcaps.eval import figures
from torchcaps.eval.drawings import coupling_entropy, dimension_grid, draw
from torchcaps.eval.evaluate import CLASS_COLUMNS
from torchcaps.eval.intervals import Proportion
from torchcaps.eval.mistakes import list_mistakes
from torchcaps.eval.report import markup
from torchcaps.eval.report.measured import MeasuredRun
from torchcaps.models import CapsuleModel

__all__ = ["Section", "run_sections"]

MOST_MISTAKES = 24
ENTROPY_PICTURES = 100
PAIRS_SHOWN = 6
FAVOURITE_CLASS = 5  # a five has curves and corners, so that its dimensions are easy to read


@dataclass(frozen=True)
class Section:
    """A part of the page; ``drawings`` are its figures by name, for those who want them as PNG."""

    slug: str
    title: str
    note: str
    body: str
    drawings: Mapping[str, Any] = field(default_factory=dict)


def run_sections(measured: MeasuredRun) -> Iterator[Section]:
    """Every section that this run has material for, in the order of the page."""
    yield _curves(measured)
    yield _confusion(measured)
    if measured.result.has_two_classes:
        yield _two_classes(measured)
    yield _mistakes(measured)
    if measured.drawing_model is not None:
        if measured.examples.pairs is not None:
            yield _pairs(measured, measured.drawing_model)
        else:
            yield _reconstructions(measured, measured.drawing_model)
        yield _dimensions(measured, measured.drawing_model)
    yield _confidence(measured)


def _drawn(measured: MeasuredRun, name: str, drawing: Any, description: str, caption: str) -> str:
    return markup.figure(figures.to_svg(drawing, f"{measured.slug}-{name}", description), caption)


def _curves(measured: MeasuredRun) -> Section:
    lines = measured.run.training_lines
    losses = {
        name: [(line["step"], line[name]) for line in lines if isinstance(line.get(name), int | float)]
        for name in ("loss", "margin", "reconstruction")
    }
    records = {"training batches": lines, "held out": measured.run.validation_lines}
    errors = {
        name: [(line["step"], 100 * line["error"]) for line in rows if isinstance(line.get("error"), int | float)]
        for name, rows in records.items()
    }
    errors = {name: points for name, points in errors.items() if points}
    losses = {name: points for name, points in losses.items() if points}
    held_out = " and on examples held out of training" if "held out" in errors else ""
    note = f"Loss as it was minimised, and the error on the batches that were trained on{held_out}."
    if not losses and not errors:
        return Section("curves", "Training", "This model came without a record of its training.", "")
    drawing = figures.curves_figure(losses, errors)
    last = ", ".join(f"{name} {points[-1][1]:.4g}" for name, points in losses.items())
    body = _drawn(measured, "curves", drawing, f"Curves of the training. Last values: {last}.", f"Last values: {last}.")
    return Section("curves", "Training", note, body, {"curves": drawing})


def _confusion(measured: MeasuredRun) -> Section:
    confusion, classes = measured.result.confusion, measured.examples.classes
    drawing = figures.confusion_figure(confusion, classes)
    off = confusion.clone().fill_diagonal_(0)
    worst = [
        f"{classes[place // len(classes)]} taken for {classes[place % len(classes)]} ({count:.4g})"
        for count, place in zip(*(part.tolist() for part in off.flatten().sort(descending=True)), strict=True)
        if count > 0
    ]
    most = f"Most frequent: {', '.join(worst[:3])}." if worst else "No class was taken for another."
    body = _drawn(measured, "confusion", drawing, f"Confusion matrix. {most}", most)
    rows = measured.result.class_rows(classes)
    body += markup.details("Each class in numbers", markup.table(CLASS_COLUMNS, rows, "Errors of each class."))
    note = "Rows are the truth, columns what the model named. Blue is right, vermilion is wrong."
    if measured.result.is_multi_label:
        note += " A class that was missed counts for those named in its place."
    return Section("confusion", "Which classes are confused", note, body, {"confusion": drawing})


def _two_classes(measured: MeasuredRun) -> Section:
    result, classes = measured.result, measured.examples.classes
    rows = [
        (name, measure, *(("–", "–", "–") if share is None else _share(share)))
        for positive, name in enumerate(classes)
        for measure, share in result.two_class_metrics(positive).items()
    ]
    head = ("positive class", "measure", "share", "counted", "95 % interval")
    body = markup.table(head, rows, "Each class taken as the positive one.", text_columns=2)
    note = (
        "Sensitivity: of all positives, those named positive. Specificity: of all negatives, those named negative. "
        "Precision: of all named positive, those that are."
    )
    curve = result.roc_curve(1)
    if curve is None:
        return Section("two-classes", "One class against the other", f"{note} All examples are of one class.", body)
    drawing = figures.roc_figure(curve, classes[1])
    caption = (
        f"ROC curve of {classes[1]} (positive) against {classes[0]}, by its score less that of the other. "
        f"Area: {curve}; it is the same for either class."
    )
    body += _drawn(measured, "roc", drawing, caption, caption)
    return Section("two-classes", "One class against the other", note, body, {"roc": drawing})


def _share(share: Proportion) -> tuple[str, str, str]:
    return f"{share.percent:.2f} %", f"{share.count:,} of {share.total:,}", share.interval_text


def _mistakes(measured: MeasuredRun) -> Section:
    result, examples = measured.result, measured.examples
    wrong = result.wrong()
    shown = list_mistakes(result, examples)[:MOST_MISTAKES]
    if not shown:
        return Section("mistakes", "Mistakes", f"None: all {len(result):,} examples are right.", "")
    items = []
    for one, image in zip(shown, examples.images(wrong[:MOST_MISTAKES]), strict=True):
        truth, named = result.truth[one.position], result.named[one.position]
        true_name, said = measured.class_names(truth), measured.class_names(named)
        bars = markup.length_bars(result.scores[one.position], examples.classes, truth, named)
        picture = markup.picture(image, f"{one.name}: a {true_name} that was taken for {said}")
        change = f"{markup.escape(true_name)} → <strong>{markup.escape(said)}</strong>"
        name = f'<br><span class="soft">{markup.escape(one.name)}</span>'
        caption = f'<figcaption style="overflow-wrap: anywhere">{change}{name}</figcaption>'
        items.append(f"<li><figure>{picture}{caption}{bars}</figure></li>")
    note = (
        f"{len(wrong):,} of {len(result):,} are wrong"
        + (f"; the {len(shown)} most confident ones are shown" if len(shown) < len(wrong) else "")
        + ". True class → class named, and the file; the bars are the lengths of all capsules, "
        "the true class in blue, the one named in vermilion."
    )
    return Section("mistakes", "Worst mistakes", note, f'<ul class="mistakes">{"".join(items)}</ul>')


def _reconstructions(measured: MeasuredRun, model: CapsuleModel) -> Section:
    positions = measured.examples.one_of_each_class()
    images = measured.examples.images(positions)
    named = measured.result.named[positions]
    names = [measured.class_names(row) for row in named]
    drawing = figures.reconstruction_figure(images, draw(model, images, named), names)
    error = measured.result.mean_reconstruction_error
    caption = f"Mean sum of squared pixel differences over all {len(measured.result):,} examples: {error:.2f}."
    description = f"Inputs, reconstructions and differences for the classes {', '.join(names)}."
    body = _drawn(measured, "reconstructions", drawing, description, caption)
    several = measured.examples.any_number_of_classes
    capsules = "vectors of all capsules longer than 0.5" if several else "vector of its longest capsule alone"
    note = (
        f"The first test example of each class, drawn again from the {capsules}. In the "
        "difference, vermilion is drawn too bright and blue too dark."
    )
    return Section("reconstructions", "Reconstructions", note, body, {"reconstructions": drawing})


def _pairs(measured: MeasuredRun, model: CapsuleModel) -> Section:
    """Fig. 5: right pairs, then wrong ones drawn from their labels and from what was named."""
    result, examples = measured.result, measured.examples
    right, wrong = measured.right[:PAIRS_SHOWN], result.wrong()[: PAIRS_SHOWN // 2]
    positions = torch.cat((right, wrong, wrong))
    labels, named = examples.labels(positions), result.scores[positions].topk(2, dim=1).indices
    capsules = torch.cat((labels[: len(right) + len(wrong)], named[len(right) + len(wrong) :]))
    images = examples.images(positions)
    drawn = torch.stack([draw(model, images, capsules[:, place]) for place in range(2)], dim=1)
    captions = [
        (_both(examples.classes, a), _both(examples.classes, b), _both(examples.classes, c))
        for a, b, c in zip(labels.tolist(), capsules.tolist(), named.tolist(), strict=True)
    ]
    drawing = figures.pairs_figure(images, drawn, captions)
    error = result.mean_reconstruction_error
    caption = f"Mean sum of squared pixel differences of a digit over all {len(result):,} pairs: {error:.2f}."
    spoken = "; ".join(f"labels {a}, drawn from {b}, named {c}" for a, b, c in captions)
    body = _drawn(measured, "pairs", drawing, f"Pairs of digits and their reconstructions: {spoken}.", caption)
    note = (
        "Each digit drawn from its own capsule. L: true labels. R: capsules that were drawn. P: classes the model "
        f"named. The first {len(right)} are right; the last {2 * len(wrong)} are {len(wrong)} wrong pairs, drawn from "
        "their labels and then from what was named."
    )
    return Section("pairs", "Two digits told apart", note, body, {"pairs": drawing})


def _dimensions(measured: MeasuredRun, model: CapsuleModel) -> Section:
    truth, right = measured.result.truth, measured.right
    shown = truth.any(dim=0).nonzero()[:, 0].tolist()
    chosen = FAVOURITE_CLASS if FAVOURITE_CLASS in shown else shown[-1]
    candidates = [*right[truth[right, chosen]].tolist(), *truth[:, chosen].nonzero()[:, 0].tolist()]
    position = candidates[0]  # one that is right, if there is any
    image = measured.examples.images(torch.tensor([position]))[0]
    name = measured.examples.classes[chosen]
    source = measured.examples.file(position) or f"Test example {position}"
    drawing = figures.dimension_figure(dimension_grid(model, image, chosen), name)
    body = _drawn(
        measured,
        "dimensions",
        drawing,
        f"Grid of pictures: the dimensions of the capsule of class {name}, each moved from −0.25 to 0.25.",
        f"{source}. Other classes: torchcaps tweak RUN --class NAME --out grid.png",
    )
    note = (
        "One dimension of the vector is moved at a time, the others stay; what changes in a row is what it stands for."
    )
    return Section("dimensions", "What the dimensions mean", note, body, {"dimensions": drawing})


def _confidence(measured: MeasuredRun) -> Section:
    calibration = measured.result.calibration
    drawing = figures.calibration_figure(calibration)
    if calibration.expected_error is None:
        expected = "No class was named in any picture, so there is no confidence to compare."
    else:
        expected = f"Expected calibration error {calibration.expected_error:.3f} over 15 bins of equal width."
    description = f"Reliability diagram. {expected}"
    drawings = {"calibration": drawing}
    body = _drawn(measured, "calibration", drawing, description, expected)
    note = "Is the length of a capsule the chance that it is right? The margin loss asks for 0.9 and no more."
    if isinstance(measured.model, CapsuleModel):
        positions = torch.arange(min(ENTROPY_PICTURES, len(measured.examples)))
        entropy = coupling_entropy(measured.model, measured.examples.images(positions))
        means = ", ".join(f"{value:.3f}" for value in entropy.mean(dim=1).tolist())
        drawings["entropy"] = figures.entropy_figure(entropy, measured.model.num_classes)
        caption = f"Mean entropy of the coupling coefficients after each iteration, {len(positions)} pictures: {means}."
        body += _drawn(measured, "entropy", drawings["entropy"], caption, caption)
        note += " On the right: how far the routing has decided; lower is more decided."
    return Section("confidence", "Confidence and routing", note, f'<div class="pair">{body}</div>', drawings)


def _both(classes: tuple[str, ...], pair: list[int]) -> str:
    return ", ".join(classes[j] for j in pair)
