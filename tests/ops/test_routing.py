"""The fast routing against the loops in float64: values and every gradient."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from covering import pairwise_cases
from torchcaps import ops
from torchcaps.ops.routing import eager, naive
from torchcaps.ops.routing.options import RoutingOptions

ODD_SIZES = pairwise_cases(
    {
        "I": (1, 7, 63),
        "J": (1, 2, 10, 11),
        "D": (1, 3, 16),
        "P": (1, 5, 8),
        "R": (1, 2, 3, 4, 5),
        "shared": (False, True),
        "bias": (False, True),
        "leaky": (False, True),
        "mask": (False, True),
        "gradient": ("all", "last"),
        "centre": ("sum", "capsule", "direction", "total"),
        "sharpness": (1.0, 7.0),
    }
)
FULL_SIZE = [
    dict(I=1152, J=10, D=16, P=8, R=3, shared=False, bias=True, leaky=False, mask=False, gradient="all", centre="sum"),
    dict(
        I=1152, J=11, D=3, P=5, R=2, shared=True, bias=False, leaky=True, mask=True, gradient="all", centre="direction"
    ),
    dict(I=1152, J=1, D=1, P=1, R=5, shared=False, bias=True, leaky=True, mask=True, gradient="all", centre="capsule"),
    dict(I=1152, J=2, D=16, P=8, R=4, shared=True, bias=True, leaky=False, mask=False, gradient="last", centre="sum"),
]


def make_inputs(case, B=3, dtype=torch.float64):
    I, J, D, P = case["I"], case["J"], case["D"], case["P"]
    u = torch.randn(B, I, P, dtype=dtype)
    weight = torch.randn(*(() if case["shared"] else (I,)), J, D, P, dtype=dtype) * (0.5 if I < 100 else 0.1)
    bias = torch.randn(J, D, dtype=dtype) if case["bias"] else None
    mask = None
    if case["mask"]:
        mask = torch.rand(B, I) > 0.4
        mask[:, 0] = True
    return u, weight, bias, mask


def value_and_gradients(function, u, weight, bias, grad_output):
    leaves = [t.clone().requires_grad_() for t in (u, weight, bias) if t is not None]
    out = function(leaves[0], leaves[1], leaves[2] if bias is not None else None)
    return [out, *torch.autograd.grad(out, leaves, grad_output)]


def case_name(case):
    return "-".join(f"{key}{value}" for key, value in case.items())


@pytest.mark.parametrize("case", ODD_SIZES + FULL_SIZE, ids=case_name)
def test_eager_equals_naive(case):
    u, weight, bias, mask = make_inputs(case)
    how = dict(iterations=case["R"], leaky=case["leaky"], gradient=case["gradient"], centre=case["centre"])
    how["sharpness"] = case.get("sharpness", 1.0)
    options = RoutingOptions(**how)
    grad_output = torch.randn(3, case["J"], case["D"], dtype=torch.float64)

    def loops(u, weight, bias):
        return naive.capsule_linear(u, weight, bias, mask, options)

    def one_op(u, weight, bias):
        return ops.capsule_linear(u, weight, bias=bias, mask=mask, backend="eager", **how)

    def plain_loop(u, weight, bias):
        return ops.capsule_linear(u, weight, bias=bias, mask=mask, return_trace=True, **how)[0]

    expected = value_and_gradients(loops, u, weight, bias, grad_output)
    for function in (one_op, plain_loop):
        for got, wanted in zip(value_and_gradients(function, u, weight, bias, grad_output), expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-10)


RELATIVES = {
    "fixed-point": (dict(centre="capsule"), ops.fixed_point_routing, {}),
    "normalized": (dict(centre="direction"), ops.normalized_routing, {}),
    "k-means": (dict(centre="direction", sharpness=7.0), ops.k_means_routing, dict(distance="inner", temperature=7.0)),
}


@pytest.mark.parametrize("name", RELATIVES)
@pytest.mark.parametrize("iterations", [1, 2, 4])
def test_the_relatives_of_dynamic_routing_in_one_op_equal_those_on_votes(name, iterations):
    options, on_votes, settings = RELATIVES[name]
    u, weight, bias, mask = make_inputs(dict(I=9, J=4, D=5, P=3, shared=False, bias=name != "k-means", mask=True))
    grad_output = torch.randn(3, 4, 5, dtype=torch.float64)

    def one_op(u, weight, bias):
        return ops.capsule_linear(u, weight, iterations, bias, mask=mask, **options)

    def two_ops(u, weight, bias):
        keywords = settings if bias is None else {**settings, "bias": bias}
        return on_votes(ops.votes(u, weight), iterations, mask=mask, **keywords).capsules

    got = value_and_gradients(one_op, u, weight, bias, grad_output)
    torch.testing.assert_close(got, value_and_gradients(two_ops, u, weight, bias, grad_output), rtol=1e-9, atol=1e-10)


SELF_ATTENTION_CASES = pairwise_cases(
    {
        "I": (1, 7, 33),
        "J": (1, 2, 5),
        "D": (1, 3, 16),
        "P": (1, 5),
        "shared": (False, True),
        "priors": (False, True),
        "mask": (False, True),
        "squash": ("exponential", "paper"),
        "backend": ("eager", "naive"),
    }
)


@pytest.mark.parametrize("case", SELF_ATTENTION_CASES, ids=case_name)
def test_self_attention_in_one_op_equals_that_on_votes(case):
    u, weight, _, mask = make_inputs({**case, "bias": False})
    priors = torch.randn(case["I"], case["J"], dtype=torch.float64) if case["priors"] else None
    grad_output = torch.randn(3, case["J"], case["D"], dtype=torch.float64)

    def one_op(u, weight, priors):
        return ops.self_attention_linear(u, weight, priors, mask, case["squash"], case["backend"])

    def two_ops(u, weight, priors):
        return ops.self_attention_routing(ops.votes(u, weight), priors, mask, case["squash"]).capsules

    got = value_and_gradients(one_op, u, weight, priors, grad_output)
    expected = value_and_gradients(two_ops, u, weight, priors, grad_output)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-10)


def test_self_attention_in_one_op_has_second_gradients_and_works_in_half_precision():
    u, weight = torch.randn(2, 5, 3, dtype=torch.float64), torch.randn(5, 2, 4, 3, dtype=torch.float64)
    leaves = [x.requires_grad_() for x in (u, weight, torch.randn(5, 2, dtype=torch.float64))]
    assert gradgradcheck(ops.self_attention_linear, leaves)
    for dtype in (torch.float16, torch.bfloat16):
        capsules = ops.self_attention_linear(*(x.to(dtype) for x in leaves))
        assert capsules.dtype == dtype
        exact = ops.self_attention_linear(*(x.to(dtype).double() for x in leaves))
        torch.testing.assert_close(capsules.double(), exact, rtol=0, atol=20 * torch.finfo(dtype).eps)
    with torch.autocast("cpu", torch.bfloat16):
        assert ops.self_attention_linear(*(x.float() for x in leaves)).dtype == torch.bfloat16
    with pytest.raises(ValueError, match=r"priors must be \[I, J\] = \[5, 2\], got \[2, 5\]"):
        ops.self_attention_linear(u, weight, torch.zeros(2, 5))


def test_an_unknown_centre_lists_the_choices():
    with pytest.raises(ValueError, match="unknown centre 'mean'; choose from 'sum', 'capsule', 'direction', 'total'"):
        ops.capsule_linear(torch.randn(2, 3, 4), torch.randn(3, 2, 5, 4), centre="mean")
    with pytest.raises(ValueError, match="sharpness must be a finite number, got inf"):
        ops.capsule_linear(torch.randn(2, 3, 4), torch.randn(3, 2, 5, 4), centre="direction", sharpness=float("inf"))


@pytest.mark.parametrize("sharpness", [10.0, 100.0])
def test_a_parent_that_gets_next_to_nothing_has_a_finite_gradient(sharpness):
    u, weight = torch.randn(64, 2, 4, requires_grad=True), (2 * torch.randn(2, 4, 6, 4)).requires_grad_()
    capsules = ops.capsule_linear(u, weight, centre="direction", sharpness=sharpness)
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(capsules.sum(), (u, weight)))


@pytest.mark.filterwarnings("ignore")  # of the compiler itself
def test_a_compiled_step_takes_any_sharpness():
    u, weight = torch.randn(2, 3, 4), torch.randn(3, 2, 5, 4)

    def route(sharpness):
        return ops.capsule_linear(u, weight, centre="direction", sharpness=sharpness)

    compiled = torch.compile(route, backend="aot_eager", fullgraph=True)
    for sharpness in (1.0, 2.0, 3.5):
        torch.testing.assert_close(compiled(sharpness), route(sharpness))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("leaky", "centre"), [(False, "sum"), (True, "sum"), (False, "capsule"), (False, "direction")])
def test_gradcheck(shared, leaky, centre):
    case = dict(I=4, J=3, D=2, P=3, shared=shared, bias=True, mask=False)
    inputs = [t.requires_grad_() for t in make_inputs(case, B=2)[:3]]

    def one_op(u, weight, bias):
        return ops.capsule_linear(u, weight, 3, bias, leaky, centre=centre)

    def two_ops(u, weight, bias):
        return ops.dynamic_routing(ops.votes(u, weight), 3, bias, leaky)

    for function in (one_op, two_ops) if centre == "sum" else (one_op,):
        assert gradcheck(function, inputs)
        assert gradgradcheck(function, inputs)


def test_gradient_of_a_gradient_penalty():
    """The lean op must not drop the second derivative in silence when the inner gradient is a constant."""
    u, weight, _, _ = make_inputs(dict(I=4, J=3, D=2, P=3, shared=False, bias=False, mask=False))
    u.requires_grad_()
    penalties = []
    for capsules in (ops.capsule_linear(u, weight), ops.dynamic_routing(ops.votes(u, weight))):
        (first,) = torch.autograd.grad(capsules.sum(), u, create_graph=True)
        penalties.append(torch.autograd.grad(first.square().sum(), u)[0])
    torch.testing.assert_close(*penalties)


@pytest.mark.parametrize("part", [1, 2, 5, 100])
def test_the_number_of_examples_at_a_time_does_not_matter(monkeypatch, part):
    u, weight, bias, _ = make_inputs(dict(I=7, J=3, D=4, P=5, shared=False, bias=True, mask=False), B=5)
    grad_output = torch.randn(5, 3, 4, dtype=torch.float64)
    expected = value_and_gradients(lambda u, w, b: ops.capsule_linear(u, w, 3, b), u, weight, bias, grad_output)
    monkeypatch.setattr(eager, "VOTE_BYTES_AT_A_TIME", {"cpu": part * 7 * 3 * 4 * 8, "cuda": 0})
    got = value_and_gradients(lambda u, w, b: ops.capsule_linear(u, w, 3, b), u, weight, bias, grad_output)
    torch.testing.assert_close(got, expected, rtol=1e-13, atol=1e-14)


def test_lean_op_holds_at_most_a_part_of_the_votes():
    """Votes of this layer take 118 MB; what the op keeps for the backward pass is its inputs alone."""
    u, weight = torch.randn(160, 1152, 8, requires_grad=True), torch.randn(1152, 10, 16, 8, requires_grad=True)
    kept = []

    def keep(tensor):
        kept.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        ops.capsule_linear(u, weight)
    assert {t.data_ptr() for t in kept} == {u.data_ptr(), weight.data_ptr()}
    votes_bytes = 160 * 1152 * 10 * 16 * 4
    with torch.profiler.profile(profile_memory=True) as profile, torch.no_grad():
        ops.capsule_linear(u, weight)
    largest = max(event.self_cpu_memory_usage for event in profile.events())
    assert largest <= votes_bytes / 10


def test_one_iteration_is_averaging():
    votes = torch.randn(2, 5, 3, 4, dtype=torch.float64)
    torch.testing.assert_close(ops.dynamic_routing(votes, iterations=1), ops.squash(votes.sum(1) / 3))
    torch.testing.assert_close(ops.dynamic_routing(votes, iterations=1, leaky=True), ops.squash(votes.sum(1) / 4))


@pytest.mark.parametrize("leaky", [False, True])
def test_trace(leaky):
    votes = torch.randn(2, 7, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(2, 7, dtype=torch.bool)
    mask[1, 3:] = False
    capsules, trace = ops.dynamic_routing(votes, 4, leaky=leaky, mask=mask, return_trace=True)
    assert trace.iterations == 4
    assert trace.logits.shape == trace.coefficients.shape == (4, 2, 7, 3)
    assert trace.outputs.shape == (4, 2, 3, 4)
    assert torch.equal(trace.outputs[-1], capsules)
    assert (trace.logits[0] == 0).all()
    sums = trace.coefficients.sum(-1)
    assert (sums[:, 1, 3:] == 0).all()
    present = sums[:, mask]
    assert (present < 1).all() if leaky else torch.allclose(present, torch.ones_like(present))
    for r in range(4):
        masked = votes * mask[:, :, None, None]
        s = (trace.coefficients[r].unsqueeze(-1) * masked).sum(1)
        torch.testing.assert_close(ops.squash(s), trace.outputs[r])
        if r < 3:
            agreement = (masked * trace.outputs[r].unsqueeze(1)).sum(-1)
            torch.testing.assert_close(trace.logits[r + 1], trace.logits[r] + agreement)
    (gradient,) = torch.autograd.grad(trace.entropy().sum(), votes)
    assert gradient.abs().sum() > 0


def test_entropy_runs_from_that_of_equal_parents_to_zero():
    _, trace = ops.dynamic_routing(torch.zeros(2, 5, 7, 3), return_trace=True)
    torch.testing.assert_close(trace.entropy(), torch.full((3, 2), 7.0).log())
    votes = torch.zeros(1, 2, 2, 3)
    votes[:, :, 0] = 100
    _, trace = ops.dynamic_routing(votes, return_trace=True)
    assert trace.entropy()[-1].item() < 1e-6


def test_lean_op_with_trace_equals_without():
    u, weight, bias, mask = make_inputs(dict(I=7, J=3, D=4, P=5, shared=False, bias=True, mask=True))
    capsules, trace = ops.capsule_linear(u, weight, bias=bias, mask=mask, return_trace=True)
    torch.testing.assert_close(capsules, ops.capsule_linear(u, weight, bias=bias, mask=mask))
    assert trace.coefficients.shape == (3, 3, 7, 3)


def test_mask_equals_leaving_out():
    """A masked capsule may hold anything, even NaN, and gets no gradient."""
    u, weight = torch.randn(2, 5, 3), torch.randn(4, 6, 3)
    spoiled = u.clone()
    spoiled[:, 3:] = float("nan")
    spoiled.requires_grad_()
    mask = torch.tensor([True, True, True, False, False])
    out = ops.capsule_linear(spoiled, weight, mask=mask)
    torch.testing.assert_close(out, ops.capsule_linear(u[:, :3], weight))
    out.sum().backward()
    assert (spoiled.grad[:, 3:] == 0).all()
    assert spoiled.grad[:, :3].abs().sum() > 0
