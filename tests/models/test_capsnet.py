import pytest
import torch

import torchcaps
from torchcaps import data
from torchcaps.models import PRESETS, CapsNet


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("name", "settings", "parameters"),
    [
        ("capsnet", dict(), 8_215_728),
        ("capsnet", dict(decoder="none"), 6_804_384),
        ("capsnet", dict(preset="paper"), 8_215_728 - 160),  # the text has no bias inside the routing
        ("capsnet", dict(image_shape=(1, 36, 36)), 11_361_968),
        ("capsnet", dict(image_shape=(1, 40, 40)), 13_475_808),
        ("baseline-cnn", dict(), 35_445_522),
        ("baseline-cnn-multimnist", dict(), 24_563_978),
    ],
)
def test_parameter_counts_of_the_paper(name, settings, parameters):
    with torch.device("meta"):
        assert count(torchcaps.create_model(name, **settings)) == parameters


def test_small_cnn_is_no_larger_than_the_encoder():
    assert count(torchcaps.create_model("small-cnn")) <= 6_804_384


@pytest.mark.parametrize("preset", ["paper", "official"])
def test_layers_of_the_paper(preset):
    model = torchcaps.create_model("capsnet", preset=preset)
    images = torch.rand(2, 1, 28, 28)
    assert model.conv(images).shape == (2, 256, 20, 20)
    assert model.lower_capsules(images).shape == (2, 1152, 8)
    assert model.primary_grid == (6, 6, 32)
    out = model(images, return_trace=True)
    assert out.capsules.shape == (2, 10, 16)
    assert out.trace.coefficients.shape == (3, 2, 1152, 10)
    assert model.reconstruct(out.capsules, torch.tensor([3, 4])).shape == images.shape
    assert model(images).trace is None


def test_presets_hold_what_text_and_code_differ_in():
    paper, official = (torchcaps.create_model("capsnet", preset=name) for name in ("paper", "official"))
    assert (paper.primary.scale, official.primary.scale) == (1.0, 1 / 32)
    assert paper.classes.bias is None
    assert (official.classes.bias == 0.1).all()
    assert (official.conv.bias == 0.1).all()
    assert official.conv.weight.std().item() == pytest.approx(0.05 * 0.8796, rel=0.02)
    assert official.decoder.layers[0].weight.std().item() == pytest.approx(0.1 * 0.8796, rel=0.02)
    assert not (paper.conv.bias == 0.1).any()
    assert not (paper.primary.bias == 0.1).any()
    assert paper.decoder.layers[0].weight.abs().max() <= 1 / 160**0.5
    assert (paper.make_loss().balance, official.make_loss().balance) == ("paper", "official")
    assert paper.classes.fused.gradient == official.classes.fused.gradient == "all"
    assert torchcaps.create_model("capsnet", primary_types=16).primary.scale == 1 / 16
    differing = {name for name, value in vars(PRESETS["paper"]).items() if value != vars(PRESETS["official"])[name]}
    assert differing >= {"loss_balance", "primary_scale", "capsule_bias", "start_values", "multimnist_shift", "steps"}


def test_single_choices_of_a_preset_can_be_overridden():
    model = torchcaps.create_model(
        "capsnet",
        preset="official",
        primary_scale=1.0,
        capsule_bias=False,
        start_values="torch",
        routing_gradient="last",
    )
    assert model.primary.scale == 1.0
    assert model.classes.bias is None
    assert model.classes.fused.gradient == "last"
    assert not (model.conv.bias == 0.1).any()


def test_reset_parameters_draws_the_same_kind_of_values_again():
    model = torchcaps.create_model("capsnet", conv_channels=16, primary_types=2)
    before = {name: p.clone() for name, p in model.named_parameters()}
    model.reset_parameters()
    for name, parameter in model.named_parameters():
        same = torch.equal(parameter, before[name])
        assert same == name.endswith("bias"), name
    assert model.conv.weight.abs().max() <= 0.1


@pytest.mark.parametrize(
    "settings",
    [
        dict(image_shape=(1, 17, 17), num_classes=2),
        dict(image_shape=(2, 20, 31), num_classes=1, capsule_dim=3, primary_dim=5),
        dict(image_shape=(3, 24, 24), padding="same", leaky=True, decoder="none"),
        dict(image_shape=(1, 5, 5), conv_kernel=3, primary_kernel=3),
        dict(image_shape=(1, 64, 48), shared_weights=True, decoder="conv", iterations=1),
        dict(image_shape=(1, 31, 28), shared_weights="positions", routing="em"),
    ],
)
def test_any_size_channels_and_classes(settings):
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2, **settings)
    images = torch.rand(2, *settings["image_shape"])
    out = model(images)
    assert out.lengths.shape == (2, settings.get("num_classes", 10))
    out.lengths.sum().backward()
    if settings.get("decoder") != "none":
        assert model.reconstruct(out.capsules, out.lengths.argmax(1)).shape == images.shape


def test_weights_shared_by_positions_hear_the_same_digit_everywhere():
    torch.manual_seed(0)
    settings = dict(image_shape=(1, 40, 40), conv_channels=8, primary_types=4, shared_weights="positions")
    model = torchcaps.create_model("capsnet", **settings).eval()
    assert model.classes.weight.shape == (4, 10, 16, 8)
    images = torch.zeros(2, 1, 40, 40)
    images[0, 0, 16:20, 16:20] = images[1, 0, 20:24, 18:22] = torch.rand(4, 4)  # moved by a multiple of the stride
    lengths = model(images).lengths
    torch.testing.assert_close(lengths[0], lengths[1])
    for value, shape in ((1, (10, 16, 8)), (True, (10, 16, 8)), (0, (576, 10, 16, 8))):  # numbers are taken as truth
        assert torchcaps.create_model("capsnet", **{**settings, "shared_weights": value}).classes.weight.shape == shape
    own = torchcaps.create_model("capsnet", **{**settings, "shared_weights": False}).eval()
    moved = own(images).lengths
    assert not torch.allclose(moved[0], moved[1])


@pytest.mark.slow
def test_large_colour_pictures_with_many_classes():
    model = torchcaps.create_model("capsnet", image_shape=(3, 97, 64), num_classes=37)
    with torch.no_grad():
        assert model(torch.rand(1, 3, 97, 64)).lengths.shape == (1, 37)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(image_shape=(1, 16, 28)), "16×28 are too small.*need at least 17×17.*padding='same'"),
        (dict(image_shape=(28, 28)), r"\(channels, height, width\)"),
        (dict(image_shape=(0, 28, 28)), "each a whole number from 1 to 65,536"),
        (dict(num_classes=0), "num_classes must be a whole number from 1 to 1,000,000, got 0"),
        (dict(preset="text"), "unknown preset 'text'; choose from 'paper', 'official'"),
        (dict(decoder="big"), "'fc', 'conv' or 'none'"),
        (dict(iterations=0), "the paper uses 3"),
        (dict(start_values="zero"), "'authors' or 'torch'"),
        (dict(shared_weights="types"), "true, false or 'positions', got 'types'"),
        (dict(padding="mirror"), "mirror"),
    ],
)
def test_wrong_settings_say_what_to_do(settings, words):
    with pytest.raises(ValueError, match=words):
        torchcaps.create_model("capsnet", **settings)


def test_wrong_pictures_say_what_to_do():
    model = torchcaps.create_model("capsnet", conv_channels=4, primary_types=1)
    with pytest.raises(ValueError, match=r"takes pictures \[B, 1, 28, 28\], got \[2, 3, 28, 28\]"):
        model(torch.rand(2, 3, 28, 28))
    with pytest.raises(ValueError, match=r"image_shape must be .*\(channels, height, width\): .* to 65,536, got 28"):
        torchcaps.create_model("capsnet", image_shape=28)
    with pytest.raises(ValueError, match="create the model with the image_shape"):
        model(torch.rand(28, 28))
    with pytest.raises(TypeError, match=r"images\.float\(\) / 255"):
        model(torch.zeros(2, 1, 28, 28, dtype=torch.uint8))
    with pytest.raises(TypeError, match=r"are torch\.float64, the network torch\.float32; write images\.to"):
        model(torch.rand(2, 1, 28, 28, dtype=torch.float64))
    with pytest.raises(ValueError, match="are on meta, the network on cpu; move one"):
        model(torch.rand(2, 1, 28, 28, device="meta"))
    with pytest.raises(TypeError, match=r"must be a tensor.*got list; torch\.stack them"):
        model([torch.rand(1, 28, 28)])
    with pytest.raises(ValueError, match="has no decoder"):
        torchcaps.create_model("capsnet", conv_channels=4, primary_types=1, decoder="none").reconstruct(
            torch.rand(1, 10, 16), torch.tensor([0])
        )


@pytest.mark.parametrize("size", [0.0, 1e-20, 1e20])
@pytest.mark.parametrize("preset", ["paper", "official"])
def test_finite_for_extreme_pictures(size, preset):
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2, preset=preset)
    out = model(torch.full((2, 1, 28, 28), size))
    labels = torch.tensor([1, 2])
    loss = model.make_loss()(out.lengths, labels, model.reconstruct(out.capsules, labels), torch.rand(2, 1, 28, 28))
    loss.total.backward()
    assert out.capsules.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_batch_of_none():
    model = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2)
    out = model(torch.rand(0, 1, 28, 28))
    assert out.capsules.shape == (0, 10, 16)


def train_on_64_digits(preset: str, steps: int) -> tuple[CapsNet, int]:
    """Train a small CapsNet until it knows its 64 digits; returns it and the steps that took."""
    split = data.sample_digits("train")
    chosen = torch.randperm(len(split), generator=torch.Generator().manual_seed(0))[:64]
    images, labels = split.images[chosen].float() / 255, split.labels[chosen]
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", preset=preset, conv_channels=32, primary_types=4)
    loss = model.make_loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(1, steps + 1):
        out = model(images)
        optimizer.zero_grad()
        loss(out.lengths, labels, model.reconstruct(out.capsules, labels), images).total.backward()
        optimizer.step()
        if (out.lengths.argmax(1) == labels).all():
            return model, step
    return model, steps + 1


@pytest.mark.parametrize("preset", ["paper", "official"])
def test_overfits_64_digits_in_under_200_steps(preset):
    assert train_on_64_digits(preset, 200)[1] < 200


def test_same_seed_gives_the_same_weights_bit_for_bit():
    first, second = (train_on_64_digits("official", 5)[0].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_loss_can_be_chosen_apart_from_the_preset():
    loss = torchcaps.create_model("capsnet", loss_balance="paper", reconstruction_scale=0.1).make_loss()
    assert (loss.balance, loss.reconstruction_scale) == ("paper", 0.1)
    with pytest.raises(ValueError, match="unknown loss balance 'sum'"):
        torchcaps.create_model("capsnet", loss_balance="sum")


def test_capsule_dropout_silences_whole_capsules_in_training_only():
    settings = dict(conv_channels=8, primary_types=4)
    model = CapsNet(**settings, capsule_dropout=0.5)
    plain = CapsNet(**settings)
    plain.load_state_dict(model.state_dict())
    images = torch.rand(2, 1, 28, 28)
    seen = []
    model.classes.register_forward_pre_hook(lambda _layer, inputs: seen.append(inputs[0]))
    model.train()(images)
    lower = model.lower_capsules(images)
    silent = (seen[0] == 0).all(dim=-1)  # [B, I]
    assert 0.3 < silent.float().mean() < 0.7  # 288 draws: six standard deviations
    torch.testing.assert_close(seen[0][~silent], 2 * lower[~silent])
    assert torch.equal(model.eval()(images).lengths, plain.eval()(images).lengths)
    with pytest.raises(ValueError, match="capsule_dropout must be a number from 0 to below 1"):
        CapsNet(capsule_dropout=1.0)


def test_position_dropout_silences_all_types_of_a_position():
    model = CapsNet(conv_channels=8, primary_types=4, position_dropout=0.5).train()
    lower = torch.rand(3, 144, 8) + 0.1  # 6 × 6 positions of 4 types
    kept = model._silenced(lower).unflatten(1, model.primary_grid)  # [B, rows, columns, types, P]
    silent = (kept == 0).flatten(3).all(dim=-1)
    assert torch.equal(silent, (kept == 0).flatten(3).any(dim=-1))
    assert 0.2 < silent.float().mean() < 0.8  # 108 draws: six standard deviations
    torch.testing.assert_close(kept[~silent], 2 * lower.unflatten(1, model.primary_grid)[~silent])
    assert model.eval()._silenced(lower) is lower


def test_a_stem_of_four_stands_in_the_place_of_the_first_convolution():
    model = torchcaps.create_model("capsnet", stem=(8, 8, 12, 16), primary_types=4)
    images = torch.rand(3, 1, 28, 28)
    assert model.conv(images).shape == (3, 16, 20, 20)
    assert model.primary_grid == (6, 6, 4)
    assert model.lower_capsules(images).shape == (3, 144, 8)


def test_a_stem_is_convolution_normalisation_and_relu_in_turn():
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", stem=[3, 5], primary_kernel=3, primary_types=2, padding="same")
    for norm in model.conv.norms:
        torch.nn.init.uniform_(norm.weight, 0.5, 2.0)
        torch.nn.init.normal_(norm.bias)
        torch.nn.init.normal_(norm.running_mean)
        torch.nn.init.uniform_(norm.running_var, 0.5, 2.0)
    model.double().eval()
    images = torch.rand(2, 1, 28, 28, dtype=torch.float64)
    expected = images
    for place, (convolution, norm) in enumerate(zip(model.conv.convolutions, model.conv.norms, strict=True)):
        if place:
            expected = expected.clamp(min=0)
        expected = torch.nn.functional.conv2d(expected, convolution.weight, convolution.bias, padding=1)
        expected = expected - norm.running_mean[:, None, None]
        expected = expected / (norm.running_var[:, None, None] + norm.eps).sqrt()
        expected = expected * norm.weight[:, None, None] + norm.bias[:, None, None]
    torch.testing.assert_close(model.conv(images), expected)
    assert model.conv(images).shape == (2, 5, 28, 28)
    (first, bias), (second, other_bias) = model.conv.folded()  # four tensors in place of twelve
    folded = torch.nn.functional.conv2d(images, first, bias, padding=1).relu()
    folded = torch.nn.functional.conv2d(folded, second, other_bias, padding=1)
    torch.testing.assert_close(folded, expected)


def test_a_stem_learns_and_comes_back_from_a_file(tmp_path):
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", stem=[4, 6], primary_kernel=5, primary_types=3, start_values="torch")
    before = [parameter.clone() for parameter in model.conv.parameters()]
    model.reset_parameters()
    fresh = [not torch.equal(*pair) for pair in zip(before, model.conv.parameters(), strict=True)]
    assert sum(fresh) == 2  # the two kernels; biases and normalisation start as they were
    out = model(torch.rand(4, 1, 28, 28))
    out.lengths.sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in model.conv.norms.parameters())
    model.eval().save_pretrained(tmp_path)
    again = torchcaps.from_pretrained(tmp_path)
    assert again.settings["stem"] == model.settings["stem"] == (4, 6)
    images = torch.rand(2, 1, 28, 28)
    torch.testing.assert_close(again.eval()(images).capsules, model(images).capsules, rtol=0, atol=0)


def test_dropout_silences_channels_of_the_stem_in_training_only():
    torch.manual_seed(0)
    plain, silenced = (
        torchcaps.create_model("capsnet", stem=[8, 8], stem_dropout=chance, primary_kernel=5, primary_types=2)
        for chance in (0.0, 0.5)
    )
    silenced.load_state_dict(plain.state_dict())
    images = torch.rand(4, 1, 28, 28)
    assert not torch.allclose(silenced.train().conv(images), silenced.conv(images))  # each time others
    plain.train().conv(images)
    silenced.load_state_dict(plain.state_dict())
    torch.testing.assert_close(silenced.eval().conv(images), plain.eval().conv(images), rtol=0, atol=0)
    seen = []
    silenced.conv.convolutions[1].register_forward_hook(lambda layer, inputs, output: seen.append(inputs[0]))
    silenced.train().conv(images)
    still = (seen[0] == 0).flatten(2).all(dim=2).float().mean().item()
    assert 0.3 < still < 0.7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(stem=[8, 8], stem_dropout=1.0), "stem_dropout must be a number from 0 to below 1"),
        (dict(stem=[8, 0]), "each a whole number from 1 to"),
        (dict(stem=[8, "x"]), "each a whole number from 1 to"),
        (dict(stem=[1.5]), "each a whole number from 1 to"),
        (dict(stem="abc"), "a list of widths, such as"),
        (dict(stem=5), "stem must be a list of widths"),
        (dict(stem=[4] * 11), "11 convolutions and a kernel of 9 need at least 31×31"),
    ],
)
def test_a_stem_that_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        torchcaps.create_model("capsnet", **settings)
