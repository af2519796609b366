"""Errors on moved pictures: counted as `evaluate` counts, on the same pictures, and the model is left as it was."""

from __future__ import annotations

import doctest

import pytest
import torch
from torch import nn

import torchcaps
import torchcaps.eval.robustness
from torchcaps.data import MultiMNIST, TestSplit, move, sample_digits
from torchcaps.data.augment import build
from torchcaps.errors import TorchcapsError
from torchcaps.eval import SWEEPS, Examples, Proportion, evaluate, sweep_errors
from torchcaps.eval.robustness import _moved, known_range
from torchcaps.models.output import ClassifierOutput

DIGITS = tuple("0123456789")
TEST = sample_digits("test")


def examples(**more) -> Examples:
    return Examples("mnist-sample", "test", DIGITS, TEST, **more)


def network(**settings) -> torchcaps.models.Model:
    torch.manual_seed(0)
    return torchcaps.create_model("small-cnn", channels=2, hidden=8, **settings)


class Recorder(nn.Module):
    """Keeps what it is shown."""

    num_classes = 10

    def __init__(self, size: int = 28) -> None:
        super().__init__()
        self.image_shape = (1, size, size)
        self.weight = nn.Parameter(torch.zeros(1))
        self.seen: list[torch.Tensor] = []

    def forward(self, images):
        self.seen.append(images)
        scores = images.new_zeros(len(images), 10)
        return ClassifierOutput(scores, scores)


def test_a_network_of_another_type_is_fed_its_own():
    errors = sweep_errors(network().bfloat16(), examples(), SWEEPS["shear"], most=20)
    assert errors[0].total == 20


@pytest.mark.parametrize(("name", "amount"), [("rotation", 40), ("scale", 0.7), ("shear", -20), ("shift", 0.25)])
def test_an_error_is_that_of_evaluate_on_moved_pictures(name, amount):
    model, sweep = network(), SWEEPS[name]
    pixels = 7.0 if name == "shift" else amount
    moved = TestSplit(move(TEST.images, sweep.kind, torch.full((500,), pixels)), TEST.labels)
    assert sweep_errors(model, examples(), sweep)[amount] == evaluate(model, moved).error


@pytest.mark.parametrize("name", SWEEPS)
def test_the_neutral_amount_moves_nothing(name):
    model, sweep = network(), SWEEPS[name]
    assert list(sweep.amounts) == sorted(sweep.amounts)
    assert sweep_errors(model, examples(), sweep)[sweep.neutral] == evaluate(model, TEST).error


def test_pairs_are_moved_as_one_picture():
    pairs = MultiMNIST(TEST)
    indices = torch.arange(30)
    model = network(image_shape=(1, 36, 36), multi_label=True)
    found = sweep_errors(model, examples(pairs=pairs, pair_indices=indices), SWEEPS["rotation"])
    scores = model.eval()(pairs.pairs(indices).images.float() / 255).scores
    assert found[0] == torchcaps.eval.exact_match_error(scores.detach(), pairs.labels(indices))


def test_pictures_are_placed_before_and_standardised_after_they_are_moved():
    model = Recorder(size=40)
    sweep_errors(model, examples(augment=build([{"name": "place", "size": 40}])), SWEEPS["shift"], most=5)
    assert model.seen[0].shape == (5, 1, 40, 40)
    ink = [float(seen.sum()) for seen in model.seen]
    torch.testing.assert_close(torch.tensor(ink), torch.full((11,), ink[5]))  # whole pixels, and room
    model = Recorder()
    sweep_errors(model, examples(augment=build([{"name": "standardize"}])), SWEEPS["scale"], most=5)
    assert model.seen[0].mean().abs() < 1e-4  # a picture half as large has its own mean
    assert model.seen[0].std() == pytest.approx(1, abs=0.01)


def test_so_many_examples_evenly_spaced_and_the_model_stays_as_it_was():
    model = network().train()
    ticks = []
    found = sweep_errors(
        model, examples(), SWEEPS["shear"], most=50, watch=lambda done, total: ticks.append((done, total))
    )
    assert {error.total for error in found.values()} == {50}
    assert ticks == [(50 * place, 450) for place in range(1, 10)]
    assert model.training
    few = TestSplit(TEST.images[::10], TEST.labels[::10])
    assert found[0] == evaluate(model, few).error


def test_standardised_pictures_are_moved_on_their_canvas():
    place = {"name": "place", "size": 40}
    plain, standard = build([place]), build([place, {"name": "standardize"}])
    quarter = [_moved(examples(augment=chain), torch.arange(20), SWEEPS["shift"], 0.25) for chain in (plain, standard)]
    torch.testing.assert_close(quarter[1], standard.steps[1].evaluate(quarter[0]))


def test_other_classes_are_refused():
    with pytest.raises(TorchcapsError, match="tells 3 classes apart"):
        sweep_errors(network(num_classes=3), examples(), SWEEPS["scale"])


def test_the_known_range_ends_at_the_first_failure():
    def curve(*percents):
        return {place - 2: Proportion(percent, 100) for place, percent in enumerate(percents)}

    assert known_range(curve(0, 9, 1, 4, 5), 0) == (0, 1)
    assert known_range(curve(0, 0, 0, 0, 0), 0) == (-2, 2)
    assert known_range(curve(0, 0, 5, 0, 0), 0) is None
    assert known_range(curve(0, 0, 5, 0, 0), 0, percent=6) == (-2, 2)
    assert known_range({}, 0) is None


def test_examples_in_the_docstrings():
    assert doctest.testmod(torchcaps.eval.robustness).failed == 0
