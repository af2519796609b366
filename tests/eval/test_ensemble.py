"""Ensembles: the scores are those of the members added, and members that do not belong together are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import torchcaps
from torchcaps.data import MultiMNIST, TestSplit, sample_digits
from torchcaps.errors import TorchcapsError
from torchcaps.eval import (
    Ensemble,
    EvaluationResult,
    Run,
    add_scores,
    common_examples,
    evaluate,
    evaluate_pairs,
    spread_pairs,
)
from torchcaps.models import Model


def network(seed: int, name: str = "small-cnn", **settings: object) -> Model:
    torch.manual_seed(seed)
    sizes = {"channels": 2, "hidden": 8} if name == "small-cnn" else {"conv_channels": 4, "primary_types": 2}
    return torchcaps.create_model(name, **sizes, **settings).eval()


def mixed(count: int) -> list[Model]:
    return [network(seed, "capsnet" if seed % 2 else "small-cnn") for seed in range(count)]


def few_digits(count: int = 37) -> TestSplit:
    split = sample_digits("test")
    return TestSplit(split.images[:count], split.labels[:count])


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_scores_are_those_of_the_members_added(count):
    members = mixed(count)
    images = torch.rand(7, 1, 28, 28)
    total = torch.zeros(7, 10, dtype=torch.float64)
    with torch.no_grad():
        for member in members:
            out = member(images)
            plain = out.capsules.norm(dim=-1) if hasattr(out, "capsules") else out.logits.softmax(dim=1)
            total += plain.double()
        together = Ensemble(members)(images)
    assert together.member_scores.shape == (count, 7, 10)
    torch.testing.assert_close(together.scores.double(), total / count, rtol=1e-5, atol=1e-6)
    assert torch.equal(together.scores.argmax(dim=1), total.argmax(dim=1))


def test_an_ensemble_is_evaluated_as_a_network_is():
    members = mixed(3)
    split = few_digits()
    together = evaluate(Ensemble(members), split, batch_size=5)
    added = add_scores([evaluate(member, split) for member in members])
    torch.testing.assert_close(together.scores, added.scores)
    assert (together.error, together.reconstruction_errors) == (added.error, None)
    assert not any(member.training for member in members)
    torch.testing.assert_close(evaluate(Ensemble(members[::-1]), split).scores, together.scores)


def test_sure_members_outweigh_a_majority():
    """Lengths are added; votes are not counted."""
    labels = torch.tensor([1])
    scores = [[0.55, 0.45], [0.05, 0.9], [0.55, 0.45]]
    results = [EvaluationResult(torch.tensor([row]), labels) for row in scores]
    assert [result.error.count for result in results] == [1, 0, 1]
    assert add_scores(results).error.count == 0


def test_pairs_are_named_by_the_two_highest_sums():
    members = [network(seed, image_shape=(1, 36, 36), multi_label=True) for seed in range(3)]
    pairs = MultiMNIST(sample_digits("test"))
    indices = spread_pairs(pairs, 60)
    found = evaluate_pairs(Ensemble(members), pairs, indices)
    batch = pairs.pairs(indices)
    with torch.no_grad():
        total = sum(member(batch.images / 255).logits.sigmoid() for member in members)
    wrong = sum(
        set(row.topk(2).indices.tolist()) != set(pair.tolist()) for row, pair in zip(total, batch.labels, strict=True)
    )
    assert found.error.count == wrong


def test_members_that_do_not_belong_together():
    with pytest.raises(TorchcapsError, match="at least one network, got none"):
        Ensemble([])
    with pytest.raises(TorchcapsError, match=r"member 0 has pictures of 1×28×28 .* and member 2 has .* 3 classes"):
        Ensemble([network(0), network(1), network(2, num_classes=3)])
    with pytest.raises(TorchcapsError, match=r"member 1 has pictures of 3×32×32"):
        Ensemble([network(0), network(1, image_shape=(3, 32, 32))])
    with pytest.raises(TypeError, match=r"got 'runs/demo'; load it first with torchcaps\.eval\.load_model"):
        Ensemble(["runs/demo"])
    scores = torch.rand(2, 3)
    results = [EvaluationResult(scores, torch.tensor(labels)) for labels in ([0, 1], [1, 0])]
    with pytest.raises(TorchcapsError, match="the same examples in the same order"):
        add_scores(results)
    with pytest.raises(TorchcapsError, match="at least one result"):
        add_scores([])


def test_what_an_ensemble_cannot_do_is_said(tmp_path):
    together = Ensemble([network(0)])
    with pytest.raises(TorchcapsError, match="save each of its members"):
        together.save_pretrained(tmp_path)
    with pytest.raises(TorchcapsError, match="train each of its members"):
        together.summary()


def run_of(name: str, validation: float = 0.1, **data: object) -> Run:
    section = {"source": "mnist-sample", "validation": validation, **data}
    return Run(Path(name), name, recipe={"data": section})


def test_each_member_sees_pictures_as_its_recipe_prepares_them():
    standardized = run_of("b", augment=[{"name": "standardize"}])
    runs, members = [run_of("a"), standardized, Run(Path("c"), "c")], [network(seed) for seed in range(3)]
    plain, other, unknown = common_examples(runs, members)
    assert (plain.name, len(plain)) == ("mnist-sample", 500)
    first = torch.arange(3)
    torch.testing.assert_close(plain.images(first), sample_digits("test").images[:3] / 255)
    assert float(other.images(first).mean().abs()) < 1e-5
    assert torch.equal(unknown.images(first), plain.images(first))
    assert not any("no recipe" in remark for remark in plain.remarks)  # the recipes of the others say it
    backwards = common_examples(runs[::-1], members[::-1])
    assert torch.equal(backwards[1].images(first), other.images(first))


def test_examples_that_members_do_not_share_are_refused():
    members = [network(0), network(1)]
    with pytest.raises(TorchcapsError, match=r"different data \(fashion-mnist, mnist-sample\); say with --data"):
        common_examples([run_of("a"), run_of("b", source="fashion-mnist")], members)
    shares = [run_of("a", validation=0.1), run_of("b", validation=0.2)]
    with pytest.raises(TorchcapsError, match=r"different shares of the training split \(0\.1, 0\.2\)"):
        common_examples(shares, members, split_name="validation")
    for other in ({"fold": 1}, {"validation_consecutive": True}):
        parts = [run_of("a", validation=0.1), run_of("b", validation=0.1, **other)]
        with pytest.raises(TorchcapsError, match="different examples of the training split, so some were trained"):
            common_examples(parts, members, split_name="validation")
    assert len(common_examples(shares, members)[1]) == 500
    with pytest.raises(TorchcapsError, match="a is given twice"):
        common_examples([run_of("a"), run_of("a")], members)
