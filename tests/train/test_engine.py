"""The engine against a loop written out by hand, the objective against the losses, and what must never happen."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import torchcaps
from torchcaps import ops
from torchcaps.data import load, sample_digits
from torchcaps.data.augment import build
from torchcaps.data.loader import Loader
from torchcaps.data.source import Source
from torchcaps.errors import DataError
from torchcaps.train import engine, fit, load_recipe
from torchcaps.train.distributed import World
from torchcaps.train.feed import Feed
from torchcaps.train.objective import Objective, is_wrong
from torchcaps.train.recipe import RecipeError
from torchcaps.train.schedule import ema_weight, learning_rate
from training_runs import losses, random_source, records, same_weights, tiny_recipe, train_tiny, weights


@pytest.mark.parametrize("sharpness", [0.0, 0.3])
def test_the_engine_takes_the_steps_of_a_plain_loop(tmp_path, sharpness):
    recipe = tiny_recipe("optimizer.clip_norm=0.05", "seed=7", f"optimizer.sharpness={sharpness}")
    run = fit(recipe, run_dir=tmp_path, device="cpu", progress=False).folder

    torch.manual_seed(7)
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2, decoder_hidden=[16])
    average = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    loader = Loader(sample_digits("train"), 10, augment=build(recipe.data.augment), seed=7)
    loss, expected = model.make_loss(), []

    def gradients(batch):
        out = model(batch.images)
        total = loss(out.lengths, batch.labels, model.reconstruct(out.capsules, batch.labels), batch.images).total
        optimizer.zero_grad()
        total.backward()
        return total

    for step in range(8):
        batch = next(iter(loader))
        optimizer.param_groups[0]["lr"] = learning_rate(recipe.schedule, 3e-3, step, 8)
        total = gradients(batch)
        if sharpness:
            here = nn.utils.parameters_to_vector(model.parameters()).detach()
            slope = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
            nn.utils.vector_to_parameters(here + sharpness * slope / slope.norm(), model.parameters())
            gradients(batch)
            nn.utils.vector_to_parameters(here, model.parameters())
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        for name, value in model.state_dict().items():
            average[name] += ema_weight(0.98, step) * (value - average[name])
        expected.append(total.item())
    assert losses(run) == pytest.approx(expected, rel=1e-5)
    for name, value in weights(run).items():  # a step moves them by 3e-3; another sum of the norm by 1e-5
        torch.testing.assert_close(value, average[name], rtol=1e-4, atol=2e-5 if sharpness else 1e-6)


def test_pairs_are_drawn_one_by_one_with_shared_weights_and_losses_added():
    model = torchcaps.create_model("capsnet", image_shape=(1, 36, 36), conv_channels=8, primary_types=2)
    images, singles = torch.rand(3, 1, 36, 36), torch.rand(3, 2, 1, 36, 36)
    labels = torch.tensor([[0, 1], [4, 2], [9, 3]])
    terms = Objective(model)(images, labels, singles)
    out = model(images)
    margin = ops.margin_loss(out.lengths, ops.multi_hot(labels, 10)) * 0.5 / 10
    drawn = sum(ops.reconstruction_loss(model.reconstruct(out.capsules, labels[:, k]), singles[:, k]) for k in (0, 1))
    torch.testing.assert_close(terms.margin, margin)
    torch.testing.assert_close(terms.reconstruction, drawn)
    torch.testing.assert_close(terms.total, margin + drawn)


def test_a_pair_of_two_classes_is_both_of_them_and_no_multi_hot_row():
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2, num_classes=2, decoder="none")
    images, pair = torch.rand(3, 1, 28, 28), torch.tensor([[1, 0]]).expand(3, 2)
    both = torch.ones(3, 2, dtype=torch.bool)
    torch.testing.assert_close(
        Objective(model)(images, pair, images).margin, Objective(model)(images, both, images).margin
    )


def test_training_draws_from_the_true_class_not_the_longest():
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2)
    images = torch.rand(4, 1, 28, 28)
    out = model(images)
    labels = (out.lengths.argmax(1) + 1) % 10
    terms = Objective(model)(images, labels, images)
    drawn = ops.reconstruction_loss(model.reconstruct(out.capsules, labels), images)
    torch.testing.assert_close(terms.reconstruction, drawn)
    assert int(terms.wrong) == 4


def test_baselines_are_trained_by_the_loss_of_their_logits():
    images, labels = torch.rand(4, 1, 28, 28), torch.tensor([1, 2, 3, 4])
    single = torchcaps.create_model("small-cnn", channels=4).eval()
    expected = nn.functional.cross_entropy(single(images).logits, labels)
    torch.testing.assert_close(Objective(single)(images, labels, images).total, expected)
    pairs = torchcaps.create_model("small-cnn", channels=4, multi_label=True).eval()
    both = torch.stack([labels, labels + 1], dim=1)
    truth = ops.multi_hot(both, 10)
    expected = nn.functional.binary_cross_entropy_with_logits(pairs(images).logits, truth)
    torch.testing.assert_close(Objective(pairs)(images, both, images).total, expected)
    torch.testing.assert_close(Objective(pairs)(images, truth.bool(), images).total, expected)


def test_which_examples_are_wrong():
    scores = torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.6, 0.7]])
    assert is_wrong(scores, torch.tensor([0, 1])).tolist() == [False, True]
    pairs = torch.tensor([[1, 0], [0, 1]])  # both must be right, in any order
    assert is_wrong(scores, pairs).tolist() == [False, True]
    any_number = torch.tensor([[True, True, False], [False, False, True]])
    assert is_wrong(scores, any_number).tolist() == [False, True]


def test_the_test_split_is_never_read(tmp_path):
    class Poison:
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(f"training asked the test split for {name}")

        def __len__(self) -> int:
            raise AssertionError("training asked how long the test split is")

    def source(test: object) -> Source:
        made = load("mnist-sample")
        object.__setattr__(made, "test", test)  # past the constructor, which checks shapes
        return made

    changes = ("data.validation=0.1", "training.steps=4", "log.validate_every=2")
    poisoned = train_tiny(tmp_path / "poisoned", *changes, source=source(Poison()))
    without = train_tiny(tmp_path / "without", *changes, source=source(None))
    assert same_weights(weights(poisoned), weights(without))
    pairs = ("data.task=multimnist", "data.augment=[]", "data.validation_pairs=20", *changes)
    train_tiny(tmp_path / "pairs", *pairs, source=source(Poison()))


def test_held_out_examples_are_not_trained_on(tmp_path):
    """Other held-out pictures, same weights: nothing of them reaches the weights."""
    from torchcaps.data import train_and_validation

    original = load("mnist-sample")
    train, validation = train_and_validation(original, 0.1)
    object.__setattr__(original, "train", train)
    object.__setattr__(original, "validation", validation)
    changed = load("mnist-sample")
    object.__setattr__(changed, "train", train)
    object.__setattr__(changed, "validation", type(validation)(255 - validation.images, validation.labels))
    changes = ("data.validation=0.1", "training.steps=4")
    one = train_tiny(tmp_path / "one", *changes, source=original)
    other = train_tiny(tmp_path / "other", *changes, source=changed)
    assert same_weights(weights(one), weights(other))
    assert [r["examples"] for r in records(one, "validation")] == [100]


def test_validation_measures_the_weights_that_will_be_kept(tmp_path):
    run = train_tiny(tmp_path, "data.validation=0.1", "training.steps=5")
    from torchcaps.data import train_and_validation

    _, held_out = train_and_validation(load("mnist-sample"), 0.1)
    model = torchcaps.from_pretrained(run / "final").eval()
    with torch.no_grad():
        wrong = model(held_out.images.float() / 255).lengths.argmax(1) != held_out.labels
    assert records(run, "validation")[-1]["error"] == pytest.approx(wrong.float().mean().item())


def test_validation_is_not_counted_as_training_time(tmp_path, monkeypatch):
    clock = itertools.count(step=0.001)
    away = []

    def slow(*_: object) -> int:
        away.append(100.0)
        return 0

    monkeypatch.setattr(engine, "time", SimpleNamespace(perf_counter=lambda: next(clock) + sum(away)))
    monkeypatch.setattr(engine, "count_held_out_errors", slow)
    run = train_tiny(tmp_path, "data.validation=0.1", "log.validate_every=2")
    assert len(away) == 4
    assert records(run, "train")[-1]["seconds"] < 1


def test_bf16_trains_nearly_like_fp32(tmp_path):
    full = train_tiny(tmp_path / "full", "training.precision=fp32")
    half = train_tiny(tmp_path / "half", "training.precision=bf16")
    assert losses(half) == pytest.approx(losses(full), rel=0.02)
    assert losses(half) != losses(full)


def test_a_graph_that_cannot_be_had_is_said(tmp_path):
    run = train_tiny(tmp_path, "training.steps=2", "training.capture=on")
    (note,) = records(run, "note")
    assert "without a CUDA graph: CUDA graphs need a CUDA device" in note["text"]


def test_seeds_differ_and_repeat(tmp_path):
    runs = [train_tiny(tmp_path / str(place), "training.steps=2", seed=seed) for place, seed in enumerate((1, 1, 2))]
    assert same_weights(weights(runs[0]), weights(runs[1]))
    assert not same_weights(weights(runs[0]), weights(runs[2]))


def test_records_hold_what_a_reader_needs(tmp_path):
    run = train_tiny(tmp_path, "training.steps=5", "log.every=2")
    found = records(run)
    assert [record["step"] for record in found] == [2, 4, 5]
    assert found[-1]["epoch"] == 0.05
    assert found[1]["lr"] == pytest.approx(learning_rate(tiny_recipe().schedule, 3e-3, 3, 5), rel=1e-6)
    for record in found:
        assert record["loss"] == pytest.approx(record["margin"] + record["reconstruction"], rel=1e-5)
        assert 0 <= record["error"] <= 1
        assert record["images_per_second"] > 0
        assert record["step_ms"] > 0


def test_epochs_become_steps(tmp_path):
    result = fit(tiny_recipe("training.epochs=0.05"), run_dir=tmp_path, device="cpu", progress=False)
    assert result.steps == 5  # 1,000 digits, 100 steps of 10 an epoch
    assert math.isfinite(result.record["loss"])


def test_overrides_change_a_recipe_that_is_no_file_too(tmp_path):
    result = fit(tiny_recipe("training.epochs=3"), ["training.steps=2"], run_dir=tmp_path, device="cpu", progress=False)
    assert result.steps == 2
    with pytest.raises(RecipeError, match="both given"):
        fit(tiny_recipe(), ["training.steps=2", "training.epochs=2"], run_dir=tmp_path / "other", progress=False)


def test_an_augmentation_that_cannot_be_done_leaves_no_folder(tmp_path):
    with pytest.raises(DataError, match="leaves size and type of a picture alone"):
        train_tiny(tmp_path / "run", 'data.augment=[{name = "crop", size = 24, chance = 0.5}]')
    assert not (tmp_path / "run").exists()


def test_a_model_that_cannot_be_built_leaves_no_folder(tmp_path):
    with pytest.raises(RecipeError, match="did you mean 'iterations'"):
        train_tiny(tmp_path / "run", "model.iteratons=2")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", sorted(torchcaps.train.list_recipes()))
def test_every_shipped_recipe_runs_for_two_steps(name, tmp_path):
    """Real recipes and full networks; the batch is small, and pictures of the right shape stand in for the data."""
    recipe = load_recipe(name, ["training.steps=2", "training.batch_size=2", "log.tensorboard=off", "log.every=1"])
    shapes = {"cifar10": (3, 32, 32), "folder:pictures": (3, 32, 32), "fashion-mnist": (1, 28, 28)}
    source = random_source(shapes.get(recipe.data.source, (1, 28, 28)), count=20, classes=4)
    result = fit(recipe, run_dir=tmp_path, device="cpu", progress=False, source=source)
    assert result.steps == 2
    assert all(math.isfinite(loss) for loss in losses(tmp_path))
    model = result.load_model()
    assert model.num_classes == 4
    assert len(records(tmp_path, "validation")) == (recipe.data.validation > 0)


def test_held_out_pictures_may_be_augmented_once_and_alike():
    def held_out(*changes: str) -> torch.Tensor:
        recipe = tiny_recipe("data.validation=0.1", 'data.augment=[{name="place", size=40}]', *changes)
        feed = Feed.build(recipe, load("mnist-sample"), World(torch.device("cpu")), channels_last=False)
        assert feed.image_shape == (1, 40, 40)
        return torch.cat([example.images for example in feed.held_out(30)])

    middle = held_out()
    placed = [held_out("data.validation_augmented=true", f"seed={seed}") for seed in (0, 1)]
    assert torch.equal(placed[0], placed[1])  # not a choice of the run
    assert not torch.equal(placed[0], middle)
    torch.testing.assert_close(placed[0].sum((1, 2, 3)), middle.sum((1, 2, 3)))  # the whole digit, elsewhere


def test_held_out_pairs_show_every_digit():
    changes = ("data.task=multimnist", "data.augment=[]", "data.validation=0.1", "data.validation_pairs=200")
    feed = Feed.build(tiny_recipe(*changes), load("mnist-sample"), World(torch.device("cpu")), channels_last=False)
    examples = list(feed.held_out(64))
    assert sum(len(example.labels) for example in examples) == feed.validation_count == 200
    assert torch.cat([example.labels[:, 0] for example in examples]).bincount(minlength=10).min() >= 20


def test_a_stop_at_accuracy_needs_held_out_examples():
    with pytest.raises(RecipeError, match=r"data\.validation is 0"):
        tiny_recipe("training.stop_at_accuracy=0.9")
