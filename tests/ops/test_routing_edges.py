"""Extreme numbers, empty batches, half precision, wrong arguments."""

import pytest
import torch
from benchmarks.textbook import textbook_capsules

from torchcaps import ops
from torchcaps.ops.routing import naive
from torchcaps.ops.routing.options import RoutingOptions


@pytest.mark.parametrize("size", [0.0, 1e-20, 1.0, 1e20])
@pytest.mark.parametrize("iterations", [1, 3])
def test_finite_at_any_size(size, iterations):
    u = torch.full((2, 7, 8), size, requires_grad=True)
    weight = (0.1 * torch.randn(7, 5, 16, 8)).requires_grad_()
    bias = torch.zeros(5, 16, requires_grad=True)
    for capsules in (
        ops.capsule_linear(u, weight, iterations, bias),
        ops.dynamic_routing(ops.votes(u, weight), iterations, bias),
    ):
        gradients = torch.autograd.grad(capsules.sum(), (u, weight, bias))
        assert capsules.isfinite().all()
        assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("B", [0, 1])
def test_batch_of_none_and_of_one(B):
    u, weight = torch.randn(B, 7, 8, requires_grad=True), torch.randn(7, 5, 16, 8, requires_grad=True)
    capsules = ops.capsule_linear(u, weight)
    assert capsules.shape == (B, 5, 16)
    capsules.sum().backward()
    assert u.grad.shape == u.shape
    assert weight.grad.isfinite().all()
    assert ops.dynamic_routing(ops.votes(u, weight)).shape == (B, 5, 16)


@pytest.mark.parametrize("shape", [(7, 5, 16, 8), (5, 16, 8)])
def test_the_gradient_does_not_depend_on_how_the_weight_lies_in_memory(shape):
    u = torch.randn(3, 7, 8)
    weight = torch.randn(shape, requires_grad=True)
    turned = weight.detach().mT.contiguous().mT.requires_grad_()
    for leaf in (weight, turned):
        ops.capsule_linear(u, leaf).square().sum().backward()
    torch.testing.assert_close(turned.grad, weight.grad)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shared", [False, True])
def test_half_precision_is_no_worse_than_twice_the_textbook(dtype, shared):
    """Errors against float64 on the same rounded inputs, ours at most 2× those of the plain formulation."""
    u = torch.randn(8, 129, 8).to(dtype)
    weight = (0.2 * torch.randn(*(() if shared else (129,)), 10, 16, 8)).to(dtype)
    grad_output = torch.randn(8, 10, 16).to(dtype)
    expanded = weight if weight.ndim == 4 else weight.expand(129, -1, -1, -1)

    def run(function, *inputs):
        leaves = [t.clone().requires_grad_() for t in inputs]
        out = function(*leaves)
        return [out, *torch.autograd.grad(out, leaves, grad_output.to(out.dtype))]

    options = RoutingOptions(3)
    truth = run(lambda u, w: naive.capsule_linear(u, w, None, None, options), u.double(), expanded.double())
    plain = run(textbook_capsules, u, expanded)
    ours = run(lambda u, w: ops.capsule_linear(u, w), u, weight)
    if shared:
        truth[2], plain[2] = truth[2].sum(0), plain[2].double().sum(0)
    for name, exact, theirs, mine in zip(("capsules", "u", "weight"), truth, plain, ours, strict=True):
        assert mine.dtype == dtype
        their_error = (theirs.double() - exact).norm() / exact.norm()
        my_error = (mine.double() - exact).norm() / exact.norm()
        assert my_error <= 2 * their_error, f"{name}: {my_error:.2e} against {their_error:.2e}"


def test_autocast_takes_its_own_dtype():
    u, weight = torch.randn(2, 7, 8), torch.randn(7, 5, 16, 8)
    with torch.autocast("cpu", torch.bfloat16):
        capsules = ops.capsule_linear(u, weight)
    assert capsules.dtype == torch.bfloat16
    torch.testing.assert_close(capsules, ops.capsule_linear(u.bfloat16(), weight.bfloat16()))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_a_backward_pass_inside_autocast_is_the_same(shared, create_graph):
    u, bias = torch.randn(2, 7, 8, requires_grad=True), torch.zeros(5, 16, requires_grad=True)
    weight = torch.randn(*(() if shared else (7,)), 5, 16, 8, requires_grad=True)

    def gradients(loss):
        return torch.autograd.grad(loss, (u, weight, bias), create_graph=create_graph)

    with torch.autocast("cpu", torch.bfloat16):
        losses = [ops.capsule_linear(u, weight, bias=bias).float().square().sum() for _ in range(2)]
        inside = gradients(losses[0])
    torch.testing.assert_close(inside, gradients(losses[1]), rtol=0, atol=0)


def test_autocast_leaves_float64_alone_as_it_does_in_any_product():
    u, weight = torch.randn(2, 7, 8, dtype=torch.float64), torch.randn(7, 5, 16, 8)
    plain = ops.capsule_linear(u, weight), ops.votes(u, weight)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close((ops.capsule_linear(u, weight), ops.votes(u, weight)), plain, rtol=0, atol=0)


def test_mixed_dtypes_take_the_wider():
    u, weight = torch.randn(2, 7, 8).bfloat16(), torch.randn(7, 5, 16, 8)
    assert ops.capsule_linear(u, weight, bias=torch.zeros(5, 16, dtype=torch.float64)).dtype == torch.float32


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (dict(iterations=0), ValueError, "at least 1, got 0; the paper uses 3"),
        (dict(iterations=2.5), ValueError, "whole number"),
        (dict(gradient="some"), ValueError, "'all' or 'last'"),
        (dict(backend="cuda"), ValueError, "'naive', 'eager'"),
        (dict(bias=torch.zeros(16, 5)), ValueError, r"\[J, D\] = \[5, 16\], got \[16, 5\]"),
        (dict(mask=torch.ones(2, 7)), TypeError, "mask must be bool"),
        (dict(mask=torch.ones(3, 7, dtype=torch.bool)), ValueError, r"\[B, I\] = \[2, 7\]"),
        (dict(mask=torch.tensor([[True] * 7, [False] * 7])), ValueError, "no lower capsule is left in example 1"),
        (dict(u=torch.randn(2, 7, 9)), ValueError, "have 9 dimensions"),
        (dict(u=torch.randn(2, 6, 8)), ValueError, "for 7 lower capsules, got 6; share it"),
        (dict(u=torch.randn(2, 56)), ValueError, r"\[B, I, P\]"),
        (dict(u=torch.zeros(2, 7, 8, dtype=torch.int64)), ValueError, "floating point"),
        (dict(weight=torch.randn(5, 8)), ValueError, r"\[J, D, P\] when shared"),
        (dict(weight=torch.randn(7, 0, 16, 8)), ValueError, "J ≥ 1, got J = 0"),
    ],
)
def test_wrong_arguments_say_what_to_do(change, error, words):
    arguments = dict(u=torch.randn(2, 7, 8), weight=torch.randn(7, 5, 16, 8)) | change
    if torch.is_tensor(arguments["u"]) and arguments["u"].dtype == torch.int64:
        arguments["weight"] = arguments["weight"].long()
    with pytest.raises(error, match=words):
        ops.capsule_linear(**arguments)


def test_votes_of_the_wrong_form_are_refused():
    with pytest.raises(ValueError, match=r"\[B, I, J, D\]"):
        ops.dynamic_routing(torch.randn(2, 7, 5))
    with pytest.raises(ValueError, match="I ≥ 1"):
        ops.dynamic_routing(torch.randn(2, 0, 5, 3))


def test_backend_can_be_forced_and_explained(monkeypatch):
    u, weight = torch.randn(2, 3, 4), torch.randn(3, 2, 5, 4)
    assert ops.explain_backend(u).startswith("eager")
    monkeypatch.setenv("TORCHCAPS_BACKEND", "naive")
    assert "TORCHCAPS_BACKEND=naive forces it" in ops.explain_backend(u)
    torch.testing.assert_close(ops.capsule_linear(u, weight), ops.capsule_linear(u, weight, backend="eager"))
    monkeypatch.setenv("TORCHCAPS_BACKEND", "fastest")
    with pytest.raises(ValueError, match="names no backend"):
        ops.capsule_linear(u, weight)
