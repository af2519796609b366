"""A model over a split: the same as one example at a time, whatever the batch."""

from __future__ import annotations

import pytest
import torch

import torchcaps
from torchcaps.data import MultiMNIST, TestSplit, sample_digits
from torchcaps.data.augment import build
from torchcaps.errors import TorchcapsError
from torchcaps.eval import EvaluationResult, evaluate, evaluate_pairs, load_model, spread_pairs


def test_batches_do_not_matter(small_run):
    model = load_model(small_run).train()
    split = sample_digits("test")
    few = TestSplit(split.images[:37], split.labels[:37])
    one, other = evaluate(model, few, batch_size=5), evaluate(model, few, batch_size=37)
    torch.testing.assert_close(one.scores, other.scores)
    torch.testing.assert_close(one.reconstruction_errors, other.reconstruction_errors)
    assert model.training  # left as it came
    with torch.no_grad():
        out = model.eval()(few.images[:1] / 255)
        drawn = model.reconstruct(out.capsules, out.lengths.argmax(1))
    torch.testing.assert_close(one.scores[:1], out.lengths)
    assert float(one.reconstruction_errors[0]) == pytest.approx(
        float(((drawn - few.images[:1] / 255) ** 2).sum()), rel=1e-5
    )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_a_network_of_another_type_is_fed_its_own(small_run, dtype):
    split = sample_digits("test")
    few = TestSplit(split.images[:50], split.labels[:50])
    expected = evaluate(load_model(small_run), few)
    result = evaluate(load_model(small_run).to(dtype), few)
    torch.testing.assert_close(result.scores, expected.scores, atol=0.05, rtol=0)
    torch.testing.assert_close(result.reconstruction_errors, expected.reconstruction_errors, atol=1.0, rtol=0.05)
    pairs = MultiMNIST(split)
    wide = torchcaps.create_model("small-cnn", image_shape=(1, 36, 36), channels=4, hidden=8).to(dtype)
    assert len(evaluate_pairs(wide, pairs, spread_pairs(pairs, 20))) == 20


def test_the_small_run_has_learned_and_its_numbers_agree(small_run):
    result = evaluate(load_model(small_run), sample_digits("test"))
    facts = result.as_dict()
    assert facts["error_percent"] < 30
    assert facts["errors"] == len(result.wrong()) == int((result.scores.argmax(1) != result.labels).sum())
    low, high = facts["error_percent_interval"]
    assert low < facts["error_percent"] < high
    assert torch.tensor(facts["confusion"]).sum() == facts["examples"] == 500


def test_the_most_confident_mistake_comes_first():
    scores = torch.tensor([[0.9, 0.2], [0.6, 0.5], [0.1, 0.8], [0.9, 0.1], [0.9, 0.1]])
    result = EvaluationResult(scores, torch.tensor([1, 1, 1, 0, 1]))
    assert result.wrong().tolist() == [4, 0, 1]  # the true class least in sight first


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        (torch.tensor([1]), "error"),
        (torch.tensor([[0, 1]]), "pairs with an error"),
        (torch.tensor([[True, False]]), "pictures with an error"),
    ],
)
def test_the_error_is_named_by_what_it_counts(labels, name):
    assert EvaluationResult(torch.tensor([[0.9, 0.2]]), labels).error_name == name


def test_a_baseline_has_no_reconstruction():
    result = evaluate(torchcaps.create_model("small-cnn", channels=4, hidden=8), sample_digits("test"))
    assert result.reconstruction_errors is None
    assert result.as_dict()["reconstruction_error"] is None


def test_fixed_parts_of_the_augmentation_act(small_run):
    split = sample_digits("test")
    wide = TestSplit(torch.nn.functional.pad(split.images, [2] * 4), split.labels)
    cropped = evaluate(load_model(small_run), wide, augment=build([{"name": "crop", "size": 28}]))
    torch.testing.assert_close(cropped.scores, evaluate(load_model(small_run), split).scores)


def test_wrong_size_and_empty_split(small_run):
    model = load_model(small_run)
    with pytest.raises(TorchcapsError, match=r"takes pictures of 1×28×28 .* but the data has 1×20×20"):
        evaluate(model, TestSplit(torch.zeros(2, 1, 20, 20, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)))
    with pytest.raises(TorchcapsError, match="no pictures"):
        evaluate(model, TestSplit(torch.zeros(0, 1, 28, 28, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64)))


def test_pairs(pairs_run):
    model = load_model(pairs_run)
    pairs = MultiMNIST(sample_digits("test"))
    indices = spread_pairs(pairs, 41)
    result = evaluate_pairs(model, pairs, indices, batch_size=7)
    assert (len(result), result.truth.sum(1).unique().tolist()) == (41, [2])
    batch = pairs.pairs(indices[:3])
    with torch.no_grad():
        out = model(batch.images / 255)
        digits = [model.reconstruct(out.capsules, batch.labels[:, place]) for place in range(2)]
    expected = sum(((drawn - batch.singles[:, k] / 255) ** 2).flatten(1).sum(1) for k, drawn in enumerate(digits)) / 2
    torch.testing.assert_close(result.reconstruction_errors[:3], expected)
    assert result.as_dict()["labels"] == 82


def test_spread_pairs_reach_from_the_first_to_the_last_digit():
    pairs = MultiMNIST(sample_digits("test"))
    digits = spread_pairs(pairs, 500) // pairs.pairs_per_digit
    assert digits.tolist() == list(range(500))
    assert len(spread_pairs(pairs, 10**9)) == len(pairs)
    with pytest.raises(TorchcapsError, match="at least one pair"):
        spread_pairs(pairs, 0)


def test_pictures_of_several_classes_are_drawn_from_all_that_are_named():
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2, num_classes=3).eval()
    with torch.no_grad():
        model.classes.bias.fill_(3.0)  # all three are named
    images = torch.randint(0, 256, (4, 1, 28, 28), dtype=torch.uint8)
    split = TestSplit(images, torch.tensor([[True, True, False]] * 4))
    with torch.no_grad():
        out = model(images / 255)
        named = out.scores > 0.5
        expected = (model.reconstruct(out.capsules, named) - images / 255).square().flatten(1).sum(1)
    assert named.sum() > 4
    torch.testing.assert_close(evaluate(model, split).reconstruction_errors, expected, rtol=1e-4, atol=1e-4)
