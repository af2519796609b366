"""Every routing by name: sound, in layers and models, saved and loaded, stable."""

import json
from functools import partial

import pytest
import torch

import torchcaps
from torchcaps import nn, ops
from torchcaps.nn.routing import registry
from torchcaps.testing import check_routing

ROUTINGS = torchcaps.list_routings()
EXPECTED = {
    "attention",
    "average",
    "dynamic",
    "em",
    "fixed-point",
    "inverted-attention",
    "k-means",
    "leaky",
    "max-min",
    "normalized",
    "self-attention",
    "self-routing",
    "vb",
}
SIZES = nn.LayerSizes(7, 3, 4, 5)


def test_the_family_is_complete():
    assert set(ROUTINGS) == EXPECTED
    assert torchcaps.list_routings("k*") == ["k-means"]


@pytest.mark.parametrize("name", ROUTINGS)
def test_every_routing_is_sound(name):
    report = check_routing(nn.create_routing(name, SIZES))
    assert report.passed, str(report)
    checked = {finding.name for finding in report.findings if not finding.skipped}
    assert checked >= {
        "shape",
        "batch_independence",
        "child_permutation",
        "zero_votes",
        "full_gradient",
        "masked_children",
        "trace_agrees",
    }


def test_settings_change_what_applies():
    inner = check_routing(nn.KMeansRouting(distance="inner"))
    assert inner.passed, str(inner)
    skipped = {finding.name for finding in inner.findings if finding.skipped}
    assert skipped == {"leaky_coefficients", "agrees_with_procedure_1"}
    assert {f.name for f in check_routing(nn.DynamicRouting()).findings if f.skipped} == {"leaky_coefficients"}
    assert check_routing(nn.DynamicRouting(leaky=True)).passed


@pytest.mark.parametrize("name", ROUTINGS)
@pytest.mark.parametrize("shared", [False, True], ids=["full", "shared"])
def test_layer_with_every_routing(name, shared):
    layer = nn.CapsuleLinear(None if shared else 7, 3, 4, 5, routing=name, iterations=2)
    u = torch.randn(2, 7, 4, requires_grad=True)
    out = layer(u, full=True)
    assert out.capsules.shape == (2, 3, 5)
    assert ((out.activations >= 0) & (out.activations <= 1)).all()
    torch.testing.assert_close(layer(u), out.capsules)
    (out.capsules.square().sum() + out.activations.sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
    capsules, trace = layer.trace(u)
    torch.testing.assert_close(capsules, out.capsules)
    assert trace.iterations == (2 if name not in ("average", "self-attention", "self-routing") else 1)
    algorithm = nn.create_routing(name, SIZES)
    if algorithm.normalizes != "nothing":
        total = trace.coefficients.sum(dim=3 if algorithm.normalizes == "parents" else 2)
        torch.testing.assert_close(total, torch.ones_like(total))
    assert name in repr(layer)


@pytest.mark.parametrize("name", ROUTINGS)
def test_layer_with_a_mask(name):
    """What a masked lower capsule holds, even NaN, reaches neither the result nor the weights."""
    layer = nn.CapsuleLinear(None, 3, 4, 5, routing=name)
    u = torch.randn(2, 7, 4)
    spoiled = u.clone()
    spoiled[:, 5:] = float("nan")
    mask = torch.arange(7) < 5
    out = layer(spoiled, mask, full=True)
    expected = layer(u[:, :5], full=True)
    torch.testing.assert_close(out.capsules, expected.capsules)
    torch.testing.assert_close(out.activations, expected.activations)
    out.capsules.square().sum().backward()
    assert layer.weight.grad.isfinite().all()


def outputs_of(name, votes, coefficients, lower):
    """What these coefficients ``[R, B, I, J]`` make of the votes, by the formula of each routing."""
    if name in ("em", "self-routing", "vb"):
        coefficients = coefficients * ops.capsule_lengths(lower)[..., None]
    sums, received = torch.einsum("rbij,bijd->rbjd", coefficients, votes), coefficients.sum(dim=2).unsqueeze(3)
    if name in ("em", "self-routing"):
        return sums / received
    if name == "vb":
        return sums / (1 + received)  # one imagined vote at 0
    if name == "inverted-attention":
        return torch.nn.functional.layer_norm(sums, sums.shape[3:])
    if name == "k-means":
        sums = sums / received
    return ops.squash(sums, kind="exponential" if name == "self-attention" else "paper")


@pytest.mark.parametrize("name", ROUTINGS)
def test_the_capsules_of_a_trace_are_made_with_its_coefficients(name):
    layer = nn.CapsuleLinear(7, 3, 4, 5, routing=name, bias=False, dtype=torch.float64)
    torch.nn.init.normal_(layer.weight)
    u, mask = torch.randn(2, 7, 4, dtype=torch.float64), torch.rand(2, 7) > 0.3
    trace = layer.trace(u, mask)[1]
    assert (trace.coefficients[:, ~mask] == 0).all()
    torch.testing.assert_close(trace.outputs, outputs_of(name, layer.votes(u), trace.coefficients, u))


def test_given_activations_weight_the_children():
    layer = nn.CapsuleLinear(None, 3, 4, 5, routing="em")
    u = torch.randn(2, 7, 4)
    absent = torch.ones(2, 7)
    absent[:, 4:] = 0
    expected = layer(u[:, :4], activations=torch.ones(2, 4))
    torch.testing.assert_close(layer(u, activations=absent), expected)
    lengths = ops.capsule_lengths(u)
    torch.testing.assert_close(layer(u), layer(u, activations=lengths))


def test_a_name_with_settings_or_an_object_is_the_same():
    u = torch.randn(2, 7, 4)
    by_dict = nn.CapsuleLinear(7, 3, 4, 5, routing={"name": "k-means", "temperature": 3.0, "iterations": 4})
    by_object = nn.CapsuleLinear(7, 3, 4, 5, routing=nn.KMeansRouting(4, temperature=3.0), iterations=2)
    by_object.load_state_dict(by_dict.state_dict())
    torch.testing.assert_close(by_dict(u), by_object(u))
    leaky = nn.CapsuleLinear(7, 3, 4, 5, routing="leaky")
    same = nn.CapsuleLinear(7, 3, 4, 5, leaky=True)
    same.load_state_dict(leaky.state_dict())
    assert torch.equal(leaky(u), same(u))
    assert leaky.fused == same.fused
    assert nn.CapsuleLinear(7, 3, 4, 5, routing={"name": "dynamic", "iterations": 5}).fused.iterations == 5
    assert nn.CapsuleLinear(7, 3, 4, 5, routing="em").bias is None


@pytest.mark.parametrize("value", ["hot", float("nan"), float("inf"), None])
def test_a_temperature_that_is_no_number_is_named(value):
    with pytest.raises(ValueError, match=f"temperature must be a finite number, got {value!r}"):
        nn.KMeansRouting(temperature=value)
    for mixture in (nn.EMRouting, nn.VBRouting):
        with pytest.raises(ValueError, match=f"inverse_temperature must be a finite number, got {value!r}"):
            mixture(3, inverse_temperature=value)
    with pytest.raises(ValueError, match=f"lower must be a finite number, got {value!r}"):
        nn.MaxMinRouting(lower=value)
    with pytest.raises(ValueError, match=f"sharpness must be a finite number, got {value!r}"):
        ops.capsule_linear(torch.randn(2, 3, 4), torch.randn(3, 2, 5, 4), centre="direction", sharpness=value)


def test_which_routings_run_in_the_op_that_forms_the_votes():
    class Mine(nn.FixedPointRouting):
        """One that is derived may do anything else."""

    def forms_votes(routing):
        return nn.CapsuleLinear(7, 3, 4, 5, routing=routing).fused is None

    assert {name for name in ROUTINGS if not forms_votes(name)} == {
        "average",
        "dynamic",
        "fixed-point",
        "leaky",
        "normalized",
        "self-attention",
    }
    assert not forms_votes({"name": "k-means", "distance": "inner"})
    assert forms_votes({"name": "normalized", "squash": "half"})
    assert forms_votes(Mine())
    assert forms_votes(lambda votes, bias: votes.sum(1))


@pytest.mark.parametrize(
    "routing",
    [
        {"name": "average"},
        {"name": "fixed-point", "iterations": 4},
        {"name": "normalized", "iterations": 2},
        {"name": "k-means", "distance": "inner", "temperature": 7.0},
    ],
    ids=lambda routing: routing["name"],
)
def test_a_layer_that_forms_no_votes_gives_what_its_routing_gives_on_votes(routing):
    layer = nn.CapsuleLinear(None, 3, 4, 5, routing=routing, dtype=torch.float64)
    torch.nn.init.normal_(layer.weight)
    u = torch.randn(2, 7, 4, dtype=torch.float64)
    mask = torch.tensor([[True] * 7, [True, False] * 3 + [True]])
    expected = layer.traced(u, mask)  # on votes
    out = layer(u, mask, full=True)
    torch.testing.assert_close((out.capsules, out.activations), (expected.capsules, expected.activations))


@pytest.mark.parametrize("name", ["dynamic", "fixed-point", "em"])
def test_a_layer_takes_a_routing_that_was_changed_or_replaced(name):
    layer = nn.CapsuleLinear(7, 3, 4, 5, routing=name, dtype=torch.float64)
    torch.nn.init.normal_(layer.weight)
    u = torch.randn(2, 7, 4, dtype=torch.float64)
    for routing in (
        nn.FixedPointRouting(2),
        nn.AttentionRouting(2),
        nn.DynamicRouting(4),
        nn.LeakyRouting(2),
        nn.NormalizedRouting(2),
        nn.KMeansRouting(2, "inner"),  # has no use for the bias of the layer
    ):
        layer.routing = routing
        before = layer(u)
        expected = routing(layer.votes(u), bias=layer.bias if routing.takes_bias else None)
        torch.testing.assert_close(before, expected.capsules)
        layer.routing.settings["iterations"] = 5
        torch.testing.assert_close(layer(u), layer.trace(u)[0])
        assert not torch.allclose(layer(u), before)


def test_wrong_names_and_settings_say_what_there_is():
    with pytest.raises(ValueError, match=r"unknown routing 'magic'; choose from 'attention', 'average', 'dynamic'"):
        nn.create_routing("magic", SIZES)
    with pytest.raises(TypeError, match="'em' has no setting 'iteration'; did you mean 'iterations'"):
        nn.create_routing({"name": "em", "iteration": 2}, SIZES)
    with pytest.raises(TypeError, match="'average' has no setting 'out_capsules'; it takes squash"):
        nn.create_routing({"name": "average", "out_capsules": 2}, SIZES)
    with pytest.raises(ValueError, match="needs its name"):
        nn.create_routing({"iterations": 2}, SIZES)
    with pytest.raises(ValueError, match="from 1 to 1,000; the paper uses 3, got 0"):
        nn.create_routing({"name": "em", "iterations": 0}, SIZES)
    with pytest.raises(ValueError, match="unknown squash 'flat'"):
        nn.AverageRouting("flat")
    with pytest.raises(ValueError, match="lower < upper"):
        nn.MaxMinRouting(lower=1.0)
    with pytest.raises(ValueError, match="variance_floor must be a finite number above 0, got 0"):
        nn.EMRouting(3, variance_floor=0.0)
    with pytest.raises(ValueError, match="unknown distance"):
        nn.KMeansRouting(distance="far")
    with pytest.raises(ValueError, match="prior_scatter must be a finite number above 0, got -1"):
        nn.VBRouting(3, prior_scatter=-1.0)
    with pytest.raises(ValueError, match="pass lower="):
        nn.SelfRouting(7, 3, 4)(torch.randn(2, 7, 3, 5))
    with pytest.raises(TypeError, match="a name, a name with settings, a routing object or a function"):
        nn.CapsuleLinear(7, 3, 4, 5, routing=3)
    with pytest.raises(TypeError, match=r"a routing object or a function on votes, got <class .*FixedPointRouting"):
        nn.CapsuleLinear(7, 3, 4, 5, routing=nn.FixedPointRouting)


def test_a_routing_of_your_own(monkeypatch):
    monkeypatch.setattr(registry, "_ROUTINGS", dict(registry._ROUTINGS))

    @torchcaps.register_routing("halves")
    class Halves(nn.RoutingAlgorithm):
        not_applicable = {"coefficients": "the bias of a half", "one_iteration_averages": "there are none"}  # noqa: RUF012

        def forward(self, votes, *, mask=None, return_trace=False, **_unused):
            out = ops.average_routing(votes / 2, mask=mask, return_trace=return_trace)
            return out

    assert "halves" in torchcaps.list_routings()
    assert check_routing(Halves()).passed
    assert (
        torchcaps.create_model("capsnet", conv_channels=4, primary_types=1, routing="halves").settings["routing"]
        == "halves"
    )
    with pytest.raises(ValueError, match="exists already"):
        torchcaps.register_routing("halves")(Halves)


@pytest.mark.parametrize("name", ROUTINGS)
def test_a_network_with_every_routing_is_saved_and_loaded(name, tmp_path):
    small = dict(image_shape=(1, 20, 20), num_classes=3, conv_channels=4, primary_types=2, decoder_hidden=(8,))
    settings = {"name": name} if name in ("self-routing",) else {"name": name, **_one_setting(name)}
    model = torchcaps.create_model("capsnet", routing=settings, **small)
    images = torch.rand(2, 1, 20, 20)
    labels = torch.tensor([0, 2])
    out = model(images, return_trace=True)
    assert out.trace.outputs.shape[1:] == (2, 3, 16)
    model.make_loss()(out.lengths, labels, model.reconstruct(out.capsules, labels), images).total.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["routing"] == settings
    again = torchcaps.from_pretrained(tmp_path)
    assert torch.equal(again(images).lengths, model(images).lengths)
    torch.testing.assert_close(again(images).lengths, out.lengths)  # with a trace the order of sums may be another


def _one_setting(name):
    return {"squash": "half"} if name in ("average", "self-attention") else {"iterations": 2}


def test_an_object_is_saved_by_its_name_and_settings(tmp_path):
    routing = nn.EMRouting(3, iterations=2, inverse_temperature=0.1)
    small = dict(image_shape=(1, 20, 20), num_classes=3, conv_channels=4, primary_types=2, decoder="none")
    model = torchcaps.create_model("capsnet", routing=routing, **small)
    model.save_pretrained(tmp_path)
    again = torchcaps.from_pretrained(tmp_path)
    assert again.classes.routing.settings == routing.settings
    images = torch.rand(2, 1, 20, 20)
    assert torch.equal(again(images).lengths, model(images).lengths)


def test_a_derived_routing_is_not_taken_for_the_one_whose_name_it_inherits(tmp_path):
    class Sharper(nn.FixedPointRouting):
        def forward(self, votes, **options):
            return super().forward(10 * votes, **options)

    model = torchcaps.create_model("capsnet-deep", channels=4, types=(2,), depth=1, dim=4, routing=Sharper())
    assert type(model.classes.routing) is type(model.stages.layers[0].routing) is Sharper
    with pytest.raises(ValueError, match=r"cannot hold; make it a class with a name \(torchcaps.register_routing\)"):
        model.save_pretrained(tmp_path)


class Weighted(nn.DynamicRouting):
    """Dynamic routing of votes that a learned number stretches; it fits layers of any size."""

    def __init__(self):
        super().__init__()
        self.stretch = torch.nn.Parameter(torch.tensor(2.0))

    def reset_parameters(self):
        torch.nn.init.ones_(self.stretch)

    def forward(self, votes, **options):
        return super().forward(self.stretch * votes, **options)


@pytest.mark.parametrize("name", ["capsnet-deep", "matrix-capsules"])
def test_each_layer_of_a_deep_network_learns_its_own_routing(name):
    model = torchcaps.create_model(name, image_shape=(1, 20, 20), num_classes=3, routing=Weighted(), decoder="none")
    layers = [layer for layer in model.modules() if isinstance(layer, Weighted)]
    assert len(layers) == (7 if name == "capsnet-deep" else 3)
    assert {float(layer.stretch.detach()) for layer in layers} == {2.0}  # all as the object that was given
    model(torch.rand(2, 1, 20, 20)).lengths.sum().backward()
    assert len({float(layer.stretch.grad) for layer in layers}) == len(layers)


@pytest.mark.parametrize("layer", [partial(nn.CapsuleLinear, 5, 3, 4, 4), partial(nn.ConvCapsules, 2, 3, 4, 4)])
def test_an_object_keeps_its_values_until_new_ones_are_asked_for(layer):
    routing = Weighted()
    made = layer(routing=routing)
    assert made.routing is routing
    assert routing.stretch.item() == 2
    made.reset_parameters()
    assert routing.stretch.item() == 1


def train(name: str, dtype: torch.dtype, steps: int, sizes=(6, 3, 4, 4), batch=8, device="cpu") -> torch.Tensor:
    """Classify fixed noise with one layer, a small one unless told; returns the losses."""
    torch.manual_seed(0)
    I, J, P, _ = sizes
    layer = nn.CapsuleLinear(*sizes, routing=name).to(device)
    u, labels = ops.squash(torch.randn(batch, I, P)).to(device), torch.arange(batch, device=device) % J
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-3, fused=True)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast(device, dtype, enabled=dtype != torch.float32):
            out = layer(u, full=True)
        loss = ops.margin_loss(out.activations, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    assert all(p.isfinite().all() for p in layer.parameters())
    return torch.stack(losses)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", ROUTINGS)
def test_no_nan_in_a_thousand_steps(name, dtype):
    losses = train(name, dtype, 1000)
    assert losses.isfinite().all()
    assert losses[59] < losses[0]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", ROUTINGS)
def test_no_nan_in_a_thousand_steps_of_capsnets_class_layer_on_a_gpu(name, dtype):
    assert train(name, dtype, 1000, sizes=(1152, 10, 8, 16), batch=64, device="cuda").isfinite().all()
