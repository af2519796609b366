"""Figures 3, 4 and 5: which examples are shown, and from which capsules they are drawn."""

from __future__ import annotations

import pytest
import torch

from torchcaps.errors import TorchcapsError
from torchcaps.eval import choose_examples, load_model, open_run, paper_figures
from torchcaps.eval.paper_figures import Answers, answer


def opened(folder, pairs=60):
    run = open_run(folder)
    model = load_model(run)
    return model, choose_examples(run, model, None, "test", None, pairs)


def below(figure) -> list[str]:
    """Captions below the columns."""
    return [label.get_text() for label in figure.axes[0].get_xticklabels()]


def test_answers_put_different_classes_first():
    scores = torch.eye(3)[[0, 0, 1, 1, 2]] * torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5])[:, None]
    answers = Answers(torch.arange(5), scores, torch.tensor([0, 0, 1, 2, 0]))
    assert answers.named.tolist() == [0, 0, 1, 1, 2]
    assert answers.right(2).tolist() == [0, 2]
    assert answers.right(9).tolist() == [0, 2, 1]
    assert answers.wrong(9).tolist() == [3, 4]  # the most confident first
    pairs = Answers(torch.arange(2), torch.tensor([[0.1, 0.9, 0.8], [0.9, 0.8, 0.1]]), torch.tensor([[2, 1], [0, 2]]))
    assert pairs.is_right.tolist() == [True, False]


def test_figure_3_draws_mistakes_from_label_and_from_answer(small_run):
    model, examples = opened(small_run)
    answers = answer(model, examples, 100)
    assert answers.positions.tolist() == list(range(0, 500, 5))
    captions = [
        caption.split("\n") for caption in below(paper_figures.figure_reconstructions(model, examples, answers))
    ]
    right = [caption for caption in captions if caption[0][2:] == caption[1][2:]]
    wrong = [caption for caption in captions if caption not in right]
    assert all(label[2:] == named[2:] == drawn[2:] for label, named, drawn in right)
    assert len(wrong) == 2 * len(answers.wrong(2)) > 0
    for from_label, from_answer in zip(wrong[::2], wrong[1::2], strict=True):
        assert from_label[:2] == from_answer[:2]
        assert from_label[2][2:] == from_label[0][2:]
        assert from_answer[2][2:] == from_answer[1][2:]


def test_figure_4_has_a_row_for_each_class_named_right(small_run):
    model, examples = opened(small_run)
    answers = answer(model, examples, 200)
    labels = [
        label.get_text()
        for label in paper_figures.figure_dimensions(model, examples, answers).axes[0].get_yticklabels()
    ]
    classes = sorted(set(answers.labels[answers.is_right].tolist()))
    assert [int(label.split(",")[0]) for label in labels] == classes
    assert all(1 <= int(label.split()[-1]) <= 16 for label in labels)


def test_figure_5_asks_for_digits_that_are_not_there(pairs_run):
    model, examples = opened(pairs_run)
    answers = answer(model, examples)
    assert len(answers.positions) == 60
    captions = [caption.split("\n") for caption in below(paper_figures.figure_pairs(model, examples, answers))]
    starred = [caption for caption in captions if caption[1].startswith("R *")]
    assert len(starred) == min(2, int(answers.is_right.sum()))
    for labels, asked, _ in starred:
        first, second = asked.removeprefix("R *").split(", ")
        assert first == labels[2:].split(", ")[0]
        assert second not in labels[2:].split(", ")
    assert len(captions) >= 4


def test_figures_that_do_not_fit_the_model(small_run, pairs_run):
    model, examples = opened(pairs_run)
    answers = answer(model, examples)
    for make in (paper_figures.figure_reconstructions, paper_figures.figure_dimensions):
        with pytest.raises(TorchcapsError, match="learned from pairs"):
            make(model, examples, answers)
    model, examples = opened(small_run)
    with pytest.raises(TorchcapsError, match="figure 5 shows pairs"):
        paper_figures.figure_pairs(model, examples, answer(model, examples, 20))
