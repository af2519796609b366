"""Where routings are easily wrong: weights used twice, starved parents, two parents, autocast, torch.func."""

from __future__ import annotations

import math

import pytest
import torch

import torchcaps
from torchcaps import nn, ops


def twice(op):
    torch.manual_seed(0)
    x = torch.randn(2, 4, 4, dtype=torch.float64)
    weight = torch.randn(4, 4, 4, 4, dtype=torch.float64, requires_grad=True)
    return lambda create_graph: torch.autograd.grad(
        op(op(x, weight), weight).square().sum(), weight, create_graph=create_graph
    )[0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_weights_that_are_used_twice_are_counted_once_each(create_graph):
    expected = twice(lambda u, weight: ops.dynamic_routing(ops.votes(u, weight)))(create_graph)
    torch.testing.assert_close(twice(ops.capsule_linear)(create_graph), expected, rtol=1e-9, atol=1e-12)


def test_a_parent_that_receives_next_to_nothing_has_finite_gradients():
    torch.manual_seed(0)
    votes = torch.randn(4, 72, 4, 16) * 0.01
    votes[:, :, 0] *= 300
    votes.requires_grad_()
    out = ops.em_routing(votes, torch.zeros(4), torch.zeros(4), None, 2, 10.0, standardize=True)
    (out.activations.sum() + 100 * out.capsules.square().sum()).backward()
    assert votes.grad.isfinite().all()


@pytest.mark.parametrize("squash", ops.SQUASHES)
@pytest.mark.parametrize("scale", [4.0, 6.0, 100.0])
def test_a_centre_that_no_vote_is_near_has_finite_gradients(scale, squash):
    """Its coefficients are so small that float32 holds them with few digits or not at all."""
    torch.manual_seed(0)
    votes = (scale * torch.rand(100, 1, 3, 1) * torch.randn(100, 8, 3, 4)).requires_grad_()
    out = ops.k_means_routing(votes, squash=squash)
    (out.capsules.sum() + out.activations.sum()).backward()
    assert out.capsules.isfinite().all()
    assert votes.grad.isfinite().all()


@pytest.mark.parametrize("routing", torchcaps.list_routings())
@pytest.mark.parametrize("sizes", [(6, 3, 5), (1, 3, 1), (40, 4, 16)], ids=str)
def test_votes_of_any_length_have_finite_gradients(routing, sizes):
    torch.manual_seed(0)
    I, J, D = sizes
    algorithm = nn.create_routing(routing, nn.LayerSizes(I, J, 2, D))
    for scale in (0.0, 1e-40, 1e-30, 1e-15, 1e-8, 1.0, 1e3, 1e6):
        votes = (scale * torch.randn(3, I, J, D)).requires_grad_()
        out = algorithm(votes, lower=torch.randn(3, I, 2))
        (out.capsules.sum() + out.activations.square().sum()).backward()
        assert out.capsules.isfinite().all(), scale
        assert votes.grad.isfinite().all(), scale
        assert all(p.grad is None or p.grad.isfinite().all() for p in algorithm.parameters()), scale


@pytest.mark.parametrize("routing", torchcaps.list_routings())
def test_an_empty_batch_and_one_example(routing):
    layer = nn.CapsuleLinear(6, 3, 4, 5, routing=routing)
    for count in (0, 1):
        u = torch.randn(count, 6, 4, requires_grad=True)
        out = layer.traced(u)
        torch.testing.assert_close(layer(u), out.capsules)
        assert out.activations.shape == (count, 3)
        out.capsules.sum().backward()
        assert u.grad.shape == u.shape


@pytest.mark.parametrize("routing", ["em", "vb", "self-routing"])
@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_silent_and_loud_children_have_finite_gradients(routing, scale):
    torch.manual_seed(0)
    layer = nn.CapsuleLinear(6, 3, 4, 5, routing=routing)
    u = (scale * torch.randn(2, 6, 4)).requires_grad_()
    out = layer(u, full=True)
    (out.capsules.sum() + out.activations.square().sum()).backward()
    assert u.grad.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in layer.parameters() if parameter.grad is not None)


@pytest.mark.parametrize("routing", ["em", "vb"])
@pytest.mark.parametrize("seed", [0, 1])
def test_two_parents_can_be_told_apart(routing, seed):
    """Two standardised costs are always +1 and −1 unless small differences stay small: nothing would be learned."""
    torch.manual_seed(seed)
    kinds = torch.randn(2, 20, 8)

    def batch(count):
        labels = torch.randint(2, (count,))
        return ops.squash(kinds[labels] + torch.randn(count, 20, 8)), labels

    layer = nn.CapsuleLinear(20, 2, 8, 8, routing=routing)
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-2)
    for _ in range(150):
        u, labels = batch(64)
        optimizer.zero_grad()
        ops.margin_loss(layer(u, full=True).activations, labels).backward()
        optimizer.step()
    u, labels = batch(500)
    assert (layer(u, full=True).activations.argmax(dim=1) == labels).float().mean() > 0.95


def test_torch_func_is_given_plain_pytorch():
    said = []

    def noting(u):
        said.append(torchcaps.explain_backend(u))
        return u.sum()

    torch.func.grad(noting)(torch.zeros(2, 3, 4))
    assert said == [
        "eager (batched matrix products in plain PyTorch): torch.func is at work, which sees through plain PyTorch only"
    ]


def test_autocast_touches_the_votes_and_not_the_routing():
    torch.manual_seed(0)
    votes = torch.randn(2, 30, 4, 8)
    plain, large = ops.dynamic_routing(votes), ops.dynamic_routing(1e5 * votes)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(ops.dynamic_routing(votes), plain, rtol=0, atol=0)
        torch.testing.assert_close(ops.dynamic_routing(1e5 * votes), large, rtol=0, atol=0)


@pytest.mark.parametrize("routing", torchcaps.list_routings())
def test_gradients_of_single_examples(routing):
    torch.manual_seed(0)
    layer = nn.CapsuleLinear(6, 3, 4, 5, routing=routing).double()
    weights = dict(layer.named_parameters())
    u, mask = torch.randn(3, 6, 4, dtype=torch.float64), torch.rand(3, 6) > 0.3
    mask[:, 0] = True

    def loss(weights, u, mask):
        return torch.func.functional_call(layer, weights, (u[None], mask[None])).square().sum()

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(weights, u, mask)
    for name, parameter in layer.named_parameters():
        alone = [torch.autograd.grad(loss(weights, u[i], mask[i]), parameter, allow_unused=True)[0] for i in range(3)]
        for got, wanted in zip(each[name], alone, strict=True):
            torch.testing.assert_close(got, torch.zeros_like(got) if wanted is None else wanted)


@pytest.mark.parametrize("routing", torchcaps.list_routings())
def test_entropy_is_that_of_shares(routing):
    torch.manual_seed(0)
    layer = nn.CapsuleLinear(6, 4, 3, 5, routing=routing, bias=False)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter)
    entropy = layer.trace(torch.randn(2, 6, 3))[1].entropy()
    assert bool((entropy >= 0).all())
    assert bool((entropy <= math.log(4) + 1e-6).all())
    if routing not in ("em", "self-routing", "self-attention"):  # whose parameters prefer some parents
        even = layer.trace(torch.zeros(2, 6, 3))[1].entropy()
        torch.testing.assert_close(even, torch.full_like(even, math.log(4)))
