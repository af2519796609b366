"""Matrix capsules, Efficient-CapsNet and the deep network: sizes, compilers, learning."""

import pytest
import torch

import torchcaps
from torchcaps import data
from torchcaps.eval import dimension_grid, evaluate
from torchcaps.train import load_recipe, save_recipe
from torchcaps.train.objective import Objective


def count(model):
    return sum(p.numel() for p in model.parameters())


def test_efficient_capsnet_has_the_published_number_of_parameters():
    with torch.device("meta"):
        assert count(torchcaps.create_model("efficient-capsnet")) == 161_824
        assert count(torchcaps.create_model("efficient-capsnet", decoder="fc")) == 161_824 + 1_411_344
    convolutions = 25 * 32 + 32 + 9 * 32 * 64 + 64 + 9 * 64 * 64 + 64 + 9 * 64 * 128 + 128
    norms = 2 * (32 + 64 + 64 + 128)
    assert convolutions + norms + (81 * 128 + 128) + 16 * 10 * 8 * 16 + 16 * 10 == 161_824


def test_matrix_capsules_has_the_layers_of_the_paper():
    model = torchcaps.create_model("matrix-capsules", A=64, B=8, C=16, D=16)
    images = torch.rand(2, 1, 28, 28)
    primary = model.primary(model.conv(images).relu())
    assert primary.capsules.shape == (2, 12, 12, 8, 16)
    first = model.first(*primary[:2])
    assert first.capsules.shape == (2, 5, 5, 16, 16)
    second = model.second(*first[:2])
    assert second.capsules.shape == (2, 3, 3, 16, 16)
    out = model(images, return_trace=True)
    assert out.trace.coefficients.shape == (2, 2, 3 * 3 * 16, 10)
    torch.testing.assert_close(out.lengths, out.trace.activations[-1])
    transformations = 9 * 8 * 16 * 16 + 9 * 16 * 16 * 16 + 16 * 10 * 16
    betas = 2 * (16 + 16 + 10)
    assert count(model) == (25 * 64 + 64) + (64 * 8 * 17 + 8 * 17) + transformations + betas


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("matrix-capsules", dict(image_shape=(1, 16, 28)), "too small.*at least 17×17"),
        ("matrix-capsules", dict(routing="magic"), "unknown routing 'magic'"),
        ("efficient-capsnet", dict(image_shape=(1, 9, 9)), "too small; use at least 11×11"),
        ("efficient-capsnet", dict(primary_dim=5), "must divide the 128 channels"),
        ("capsnet-deep", dict(types=()), "types must be a list: 1 to 16 entries, .* got"),
        ("capsnet-deep", dict(decoder="big"), "'fc', 'conv' or 'none'"),
    ],
)
def test_wrong_settings_say_what_to_do(name, settings, words):
    with pytest.raises(ValueError, match=words):
        torchcaps.create_model(name, **settings)


SMALL = {
    "matrix-capsules": dict(A=4, B=2, C=3, D=2, pose_size=2),
    "efficient-capsnet": dict(),
    "capsnet-deep": dict(channels=4, types=(2,), depth=1, dim=4, decoder="none", iterations=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL))
def test_compiles_as_one_graph(name):
    """Nothing in the forward or backward pass may fall out of the compiler: training relies on it."""
    model = torchcaps.create_model(name, image_shape=(1, 20, 20), **SMALL[name]).eval()
    images = torch.rand(2, 1, 20, 20)
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    with torch.autocast("cpu", torch.bfloat16, enabled=name == "matrix-capsules"):
        expected = model(images).lengths
        found = compiled(images).lengths
    torch.testing.assert_close(found, expected)
    parameters = list(model.parameters())
    wanted = torch.autograd.grad(expected.square().sum(), parameters)
    got = torch.autograd.grad(found.square().sum(), parameters)
    # Another order of sums, in float32 and for the products of autocast in bfloat16.
    tolerance = 2e-2 if name == "matrix-capsules" else 1e-4
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance * other.abs().max().item())


@pytest.mark.parametrize("name", sorted(SMALL))
def test_new_start_values(name):
    model = torchcaps.create_model(name, image_shape=(1, 20, 20), **SMALL[name])
    before = {key: p.clone() for key, p in model.named_parameters() if p.ndim > 1 and "priors" not in key}
    model.reset_parameters()
    for key, parameter in model.named_parameters():
        assert parameter.isfinite().all()
        assert key not in before or key.endswith("bias") or not torch.equal(parameter, before[key]), key


@pytest.mark.parametrize("routing", torchcaps.list_routings())
@pytest.mark.parametrize("name", ["capsnet-deep", "matrix-capsules"])
def test_deep_networks_take_every_routing(name, routing, tmp_path):
    """Every parameter gets a gradient, which training on several GPUs relies on; saving and loading works."""
    model = torchcaps.create_model(name, image_shape=(1, 20, 20), **{**SMALL[name], "routing": routing})
    images = torch.rand(2, 1, 20, 20)
    out = model(images)
    (out.lengths.sum() + out.capsules.square().sum()).backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
    model.save_pretrained(tmp_path)
    expected = model.eval()(images)
    assert torch.equal(torchcaps.from_pretrained(tmp_path).eval()(images).lengths, expected.lengths)
    traced = model(images, return_trace=True)
    torch.testing.assert_close((traced.capsules, traced.lengths), (expected.capsules, expected.lengths))


def test_class_capsules_know_where_their_children_are():
    model = torchcaps.create_model("matrix-capsules", image_shape=(1, 20, 20), **SMALL["matrix-capsules"])
    assert model.classes.coordinate_addition
    assert not model.first.coordinate_addition
    without = torchcaps.create_model("matrix-capsules", coordinate_addition=False, **SMALL["matrix-capsules"])
    assert not without.classes.coordinate_addition


def test_lower_capsules_of_efficient_capsnet_are_squashed_as_published():
    model = torchcaps.create_model("efficient-capsnet").eval()
    images = torch.rand(2, 1, 28, 28)
    sums = model.depthwise(model.features(images)).reshape(2, 16, 8)
    torch.testing.assert_close(model.lower_capsules(images).norm(dim=2), 1 - torch.exp(-sums.norm(dim=2)))


def test_an_object_serves_layers_of_any_size():
    small = {**SMALL["matrix-capsules"], "routing": torchcaps.nn.EMRouting(1, iterations=1)}
    model = torchcaps.create_model("matrix-capsules", **small)
    assert [len(layer.routing.beta_a) for layer in (model.first, model.second, model.classes)] == [3, 2, 10]
    assert model.settings["routing"]["iterations"] == model.first.routing.settings["iterations"] == 1


def test_other_capsule_networks_are_evaluated_with_their_drawings():
    model = torchcaps.create_model("efficient-capsnet", decoder="fc", decoder_hidden=(8,))
    split = data.sample_digits("test")
    result = evaluate(model, data.Split(split.images[:20], split.labels[:20]))
    assert result.mean_reconstruction_error > 0
    assert dimension_grid(model, split.images[0].float() / 255, 3).shape == (16, 11, 1, 28, 28)


def test_settings_of_a_routing_go_through_a_recipe(tmp_path):
    recipe = load_recipe("demo", ['model.routing={name = "em", iterations = 2}', "model.conv_channels=8"])
    file = tmp_path / "em.toml"
    file.write_text(save_recipe(recipe))
    assert load_recipe(file) == recipe
    model = torchcaps.create_model("capsnet", **recipe.model.settings)
    assert model.classes.routing.settings["iterations"] == 2


def test_efficient_capsnet_learns():
    """40 steps of 32 digits; where class capsules start out long, and the squash is flat, 38 % are still wrong then."""
    digits = data.sample_digits("train")
    model = torchcaps.create_model("efficient-capsnet")
    assert model(digits.images[:32].float() / 255).lengths.mean() < 0.1
    objective, optimizer = Objective(model), torch.optim.Adam(model.parameters(), lr=2e-3)
    wrong = 0
    for step in range(40):
        chosen = torch.arange(32 * step, 32 * step + 32) % len(digits)
        images, labels = digits.images[chosen].float() / 255, digits.labels[chosen].long()
        terms = objective(images, labels, images)
        optimizer.zero_grad()
        terms.total.backward()
        optimizer.step()
        wrong += int(terms.wrong) if step >= 30 else 0
    assert wrong < 0.25 * 320


def test_matrix_capsules_learn():
    """Digits that the network did not see; 10 % is chance."""
    train, test = data.sample_digits("train"), data.sample_digits("test")
    model = torchcaps.create_model("matrix-capsules", A=16, B=4, C=4, D=4)
    loss = model.make_loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(60):
        chosen = torch.randperm(len(train), generator=torch.Generator().manual_seed(step))[:32]
        out = model(train.images[chosen].float() / 255)
        optimizer.zero_grad()
        loss(out.lengths, train.labels[chosen]).total.backward()
        optimizer.step()
    with torch.no_grad():
        found = model(test.images[:100].float() / 255).lengths.argmax(dim=1)
    share = (found == test.labels[:100]).float().mean()
    assert share > 0.3, share
