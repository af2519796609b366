import functools

import pytest
import torch

import torchcaps
from torchcaps import nn, ops
from torchcaps.testing import check_routing


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("leaky", [False, True])
def test_layer_is_the_op(shared, leaky):
    layer = nn.CapsuleLinear(None if shared else 7, 5, 3, 4, iterations=2, leaky=leaky, gradient="last")
    torch.nn.init.normal_(layer.bias)
    u = torch.randn(2, 7, 3)
    mask = torch.rand(2, 7) > 0.2
    expected = ops.capsule_linear(u, layer.weight, 2, layer.bias, leaky, mask=mask, gradient="last")
    torch.testing.assert_close(layer(u, mask), expected)
    capsules, trace = layer.trace(u, mask)
    torch.testing.assert_close(capsules, expected)
    assert trace.iterations == 2


def test_a_routing_derived_from_dynamic_routing_is_called():
    class Sharper(nn.DynamicRouting):
        def forward(self, votes, **options):
            return super().forward(10 * votes, **options)

    layer = nn.CapsuleLinear(7, 5, 3, 4, routing=Sharper(), bias=False)
    u = torch.randn(2, 7, 3)
    torch.testing.assert_close(layer(u), ops.dynamic_routing(10 * layer.votes(u)))


@pytest.mark.parametrize("routing", ["dynamic", "em", "k-means"])
def test_all_routings_take_the_same_arguments(routing):
    layer = nn.CapsuleLinear(6, 3, 4, 5, routing=routing)
    assert layer(torch.randn(2, 6, 4, dtype=torch.float64)).dtype == torch.float64
    u = torch.randn(2, 6, 4)
    with pytest.raises(TypeError, match="mask must be bool"):
        layer(u, torch.ones(2, 6))
    with pytest.raises(ValueError, match=r"mask must be \[B, I\] = \[2, 6\]"):
        layer(u, torch.ones(2, 5, dtype=torch.bool))
    present = torch.arange(6) < 4
    torch.testing.assert_close(layer(u, present), layer(u, present.expand(2, 6)))


def test_a_number_of_children_that_is_fixed_is_checked_with_types_too():
    layer = nn.CapsuleLinear(32, 5, 8, 8, in_types=8)
    with pytest.raises(ValueError, match="for 32 lower capsules, got 40"):
        layer(torch.randn(2, 40, 8))


def test_shared_weights_take_any_number_of_lower_capsules():
    layer = nn.CapsuleLinear(None, 5, 3, 4)
    assert layer.weight.shape == (5, 4, 3)
    assert layer(torch.randn(2, 9, 3)).shape == layer(torch.randn(2, 100, 3)).shape == (2, 5, 4)


@pytest.mark.parametrize("routing", ["dynamic", "em"])
def test_types_share_their_weights_at_every_position(routing):
    layer = nn.CapsuleLinear(None, 5, 3, 4, routing=routing, in_types=2)
    assert layer.weight.shape == (2, 5, 4, 3)
    u, mask = torch.randn(2, 6, 3), torch.rand(6) > 0.2
    same = nn.CapsuleLinear(6, 5, 3, 4, routing=routing)
    same.load_state_dict({**layer.state_dict(), "weight": layer.weight.tile(3, 1, 1, 1)})
    torch.testing.assert_close(layer(u, mask), same(u, mask))
    torch.testing.assert_close(layer.trace(u)[1].coefficients, same.trace(u)[1].coefficients)
    torch.testing.assert_close(layer.votes(u), ops.votes(u, same.weight))
    layer(u).square().sum().backward()
    same(u).square().sum().backward()
    torch.testing.assert_close(layer.weight.grad, same.weight.grad.unflatten(0, (3, 2)).sum(0))
    assert "n×2×3 → 5×4" in repr(layer)
    with pytest.raises(ValueError, match="7 lower capsules are not a multiple of 2 types"):
        layer(torch.randn(2, 7, 3))
    with pytest.raises(ValueError, match="7 lower capsules are not a multiple of 2 types"):
        nn.CapsuleLinear(7, 5, 3, 4, in_types=2)


def test_any_routing_function_fits():
    def average(votes, bias=None, mask=None):
        return ops.squash(votes.mean(1) if bias is None else votes.mean(1) + bias)

    u = torch.randn(2, 7, 3)
    layer = nn.CapsuleLinear(7, 5, 3, 4, routing=average)
    torch.testing.assert_close(layer(u), ops.squash(ops.votes(u, layer.weight).mean(1) + layer.bias))
    ours = nn.CapsuleLinear(7, 5, 3, 4, routing=functools.partial(ops.dynamic_routing, iterations=4))
    same = nn.CapsuleLinear(7, 5, 3, 4, iterations=4)
    same.load_state_dict(ours.state_dict())
    torch.testing.assert_close(ours(u), same(u))
    torch.testing.assert_close(ours.trace(u)[1].coefficients, same.trace(u)[1].coefficients)
    assert "average" in repr(layer)


def test_a_function_gets_a_bias_only_if_it_takes_one():
    def without(votes):
        return ops.squash(votes.mean(1))

    class Module(torch.nn.Module):
        def forward(self, votes):
            return without(votes), "anything else"

    u = torch.randn(2, 7, 3)
    for routing in (without, Module()):
        assert check_routing(routing, skip={"coefficients": "a mean"}).passed
        layer = nn.CapsuleLinear(7, 5, 3, 4, routing=routing)
        assert layer.bias is None
        torch.testing.assert_close(layer(u), without(layer.votes(u)))
    images = torch.rand(2, 1, 20, 20)
    for name in ("capsnet", "capsnet-deep", "matrix-capsules"):
        model = torchcaps.create_model(name, image_shape=(1, 20, 20), routing=lambda votes, mask=None: without(votes))
        assert model(images).lengths.shape == (2, 10)


def test_a_function_that_gives_something_else_is_told_so():
    with pytest.raises(
        ValueError, match=r"\[B, J, D\] = \[2, 5, 4\], got \[2, 7, 4\]; torchcaps.testing.check_routing"
    ):
        nn.CapsuleLinear(7, 5, 3, 4, routing=lambda votes: votes.sum(2))(torch.randn(2, 7, 3))


def test_start_values_device_and_dtype():
    layer = nn.CapsuleLinear(1152, 10, 8, 16)
    assert (layer.bias == 0.1).all()
    assert layer.weight.abs().max() <= 0.2
    assert layer.weight.std().item() == pytest.approx(0.08796, rel=0.01)
    meta = nn.CapsuleLinear(7, 5, 3, 4, bias=False, device="meta", dtype=torch.bfloat16)
    assert meta.weight.is_meta
    assert meta.weight.dtype == torch.bfloat16
    assert meta.bias is None
    assert "7×3 → 5×4" in repr(meta)


def test_wrong_settings():
    with pytest.raises(ValueError, match="out_capsules ≥ 1, got 0"):
        nn.CapsuleLinear(7, 0, 3, 4)
    with pytest.raises(ValueError, match="unknown routing 'magic'"):
        nn.CapsuleLinear(7, 5, 3, 4, routing="magic")
    with pytest.raises(ValueError, match="at least 1"):
        nn.CapsuleLinear(7, 5, 3, 4, iterations=0)


def test_what_a_function_of_ones_own_lacks_for_a_call_is_named():
    def mean_of_votes(votes):
        return ops.squash(votes.mean(dim=1))

    layer = nn.CapsuleLinear(6, 3, 4, 5, routing=mean_of_votes)
    u = torch.randn(2, 6, 4)
    assert layer(u).shape == (2, 3, 5)
    with pytest.raises(TypeError, match="mean_of_votes must take mask= for this call"):
        layer(u, mask=torch.ones(2, 6, dtype=torch.bool))
    with pytest.raises(TypeError, match="mean_of_votes must take return_trace= for this call"):
        layer.trace(u)
