"""Every routing of the family against its loops in float64: values and every gradient, at odd sizes, with masks."""

import pytest
import scipy.special
import torch

from torchcaps import ops
from torchcaps.ops.routing.family import naive
from torchcaps.ops.routing.family.digamma import digamma

SIZES = [
    dict(I=1, J=2, D=3, P=2, R=1),
    dict(I=7, J=1, D=1, P=3, R=2),
    dict(I=13, J=5, D=16, P=4, R=3),
    dict(I=63, J=3, D=7, P=5, R=2),
]


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def bias_of(size):
    return dict(bias=0.3 * numbers(size["J"], size["D"]))


def betas_of(size):
    return dict(beta_a=numbers(size["J"]), beta_u=numbers(size["J"]), a=torch.rand(3, size["I"]).double() * 0.9 + 0.1)


# name → (further differentiable inputs, fast version, loops); v are the votes, x the further inputs, R the iterations
CASES = {
    "fixed-point": (
        bias_of,
        lambda v, x, R, m: ops.fixed_point_routing(v, R, mask=m, squash="half", **x),
        lambda v, x, R: naive.fixed_point(v, R, x["bias"], "half"),
    ),
    "normalized": (
        bias_of,
        lambda v, x, R, m: ops.normalized_routing(v, R, mask=m, **x),
        lambda v, x, R: naive.normalized(v, R, x["bias"], "paper"),
    ),
    "max-min": (
        bias_of,
        lambda v, x, R, m: ops.max_min_routing(v, R, 0.1, 0.9, mask=m, **x),
        lambda v, x, R: naive.max_min(v, R, 0.1, 0.9, x["bias"], "paper"),
    ),
    "attention": (
        bias_of,
        lambda v, x, R, m: ops.attention_routing(v, R, mask=m, squash="exponential", **x),
        lambda v, x, R: naive.attention(v, R, x["bias"], "exponential"),
    ),
    "average": (
        bias_of,
        lambda v, x, R, m: ops.average_routing(v, mask=m, squash="unit", **x),
        lambda v, x, R: naive.average(v, x["bias"], "unit"),
    ),
    "k-means": (
        lambda size: {},
        lambda v, x, R, m: ops.k_means_routing(v, R, "euclidean", 0.7, mask=m, squash="none"),
        lambda v, x, R: naive.k_means(v, R, "euclidean", 0.7, "none"),
    ),
    "k-means-inner": (
        lambda size: {},
        lambda v, x, R, m: ops.k_means_routing(v, R, "inner", 2.0, mask=m),
        lambda v, x, R: naive.k_means(v, R, "inner", 2.0, "paper"),
    ),
    "em": (
        betas_of,
        lambda v, x, R, m: ops.em_routing(v, x["beta_a"], x["beta_u"], x["a"], R, 0.5, 1e-2, mask=m),
        lambda v, x, R: naive.em(v, x["beta_a"], x["beta_u"], x["a"], R, 0.5, 1e-2, False),
    ),
    "em-standardized": (
        betas_of,
        lambda v, x, R, m: ops.em_routing(v, x["beta_a"], x["beta_u"], x["a"], R, 2.0, 1e-2, True, mask=m),
        lambda v, x, R: naive.em(v, x["beta_a"], x["beta_u"], x["a"], R, 2.0, 1e-2, True),
    ),
    "vb": (
        betas_of,
        lambda v, x, R, m: ops.vb_routing(v, x["beta_a"], x["beta_u"], x["a"], R, 0.5, mask=m),
        lambda v, x, R: naive.vb(v, x["beta_a"], x["beta_u"], x["a"], R, 0.5, 1.0, False),
    ),
    "vb-standardized": (
        betas_of,
        lambda v, x, R, m: ops.vb_routing(v, x["beta_a"], x["beta_u"], x["a"], R, 0.5, 1.5, True, mask=m),
        lambda v, x, R: naive.vb(v, x["beta_a"], x["beta_u"], x["a"], R, 0.5, 1.5, True),
    ),
    "self-routing": (
        lambda size: dict(
            u=numbers(3, size["I"], size["P"]),
            weight=numbers(size["I"], size["J"], size["P"]),
            a=torch.rand(3, size["I"]).double() + 0.1,
        ),
        lambda v, x, R, m: ops.self_routing(v, ops.gate_logits(x["u"], x["weight"]), x["a"], mask=m),
        lambda v, x, R: naive.self_routing(v, x["u"], x["weight"], x["a"]),
    ),
    "inverted-attention": (
        lambda size: dict(
            gain=numbers(size["D"]), offset=numbers(size["D"]), direction=numbers(size["D"]), threshold=numbers(1)
        ),
        lambda v, x, R, m: ops.inverted_attention_routing(
            v, R, x["gain"], x["offset"], x["direction"], x["threshold"].squeeze(), mask=m
        ),
        lambda v, x, R: naive.inverted_attention(v, R, x["gain"], x["offset"], x["direction"], x["threshold"]),
    ),
    "self-attention": (
        lambda size: dict(priors=numbers(size["I"], size["J"])),
        lambda v, x, R, m: ops.self_attention_routing(v, mask=m, **x),
        lambda v, x, R: naive.self_attention(v, x["priors"], "exponential"),
    ),
}
MIXTURES = ("em", "em-standardized", "vb", "vb-standardized")
FUNCTIONS = {"k-means-inner": "k_means", "em-standardized": "em", "vb-standardized": "vb"}
CHILD_AXIS = {"a": 1, "u": 1, "weight": 0, "priors": 0}  # further inputs that have an entry for each child


def make(name, size):
    torch.manual_seed(sum(size.values()))
    inputs, fast, loops = CASES[name]
    return numbers(3, size["I"], size["J"], size["D"]), inputs(size), fast, loops


def value_and_gradients(function, votes, further):
    """Capsules, activations where there are any, and the gradients of a random sum of them."""
    leaves = {name: x.clone().requires_grad_() for name, x in {"votes": votes, **further}.items()}
    result = function(leaves["votes"], {name: leaves[name] for name in further})
    outputs = [result] if isinstance(result, torch.Tensor) else list(result[:2])
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in outputs]
    loss = sum((x * w).sum() for x, w in zip(outputs, weights, strict=True))
    return [*outputs, *torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)]


def first_outputs(function, count):
    """The fast version returns activations always; the loops only where they are no lengths."""

    def wrapped(votes, further):
        result = function(votes, further)
        return result.capsules if count == 1 else result

    return wrapped


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "-".join(f"{k}{v}" for k, v in size.items()))
def test_fast_equals_loops(name, size):
    votes, further, fast, loops = make(name, size)
    expected = value_and_gradients(lambda v, x: loops(v, x, size["R"]), votes, further)
    outputs = len(expected) - 1 - len(further)
    fast_one = first_outputs(lambda v, x: fast(v, x, size["R"], None), outputs)
    for got, wanted in zip(value_and_gradients(fast_one, votes, further), expected, strict=True):
        assert (got is None) == (wanted is None)
        if got is not None:
            torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_a_masked_child_equals_one_left_out(name):
    """It may hold anything, even NaN, and gets no gradient."""
    size = SIZES[2]
    votes, further, fast, _ = make(name, size)
    keep = torch.arange(13) % 4 != 1
    spoiled = votes.clone()
    spoiled[:, ~keep] = float("nan")
    short = {
        key: x.movedim(CHILD_AXIS[key], 0)[keep].movedim(0, CHILD_AXIS[key]) if key in CHILD_AXIS else x
        for key, x in further.items()
    }
    if "u" in further:  # a layer masks its lower capsules, too
        further["u"] = further["u"].masked_fill(~keep[:, None], 0)
    masked = value_and_gradients(lambda v, x: fast(v, x, size["R"], keep), spoiled, further)
    left_out = value_and_gradients(lambda v, x: fast(v, x, size["R"], None), votes[:, keep], short)
    names = ["capsules", "activations", "votes", *further]
    for key, got, wanted in zip(names, masked, left_out, strict=True):
        axis = 1 if key == "votes" else CHILD_AXIS.get(key)
        if axis is not None:
            rows = got.movedim(axis, 0)
            assert (rows[~keep] == 0).all(), key
            got = rows[keep].movedim(0, axis)
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("routing", [ops.attention_routing, ops.inverted_attention_routing])
def test_the_scale_of_the_products(routing):
    votes = torch.randn(2, 7, 3, 4)
    torch.testing.assert_close(routing(votes, scale=0.5), routing(votes))  # 1/√D
    logits = routing(votes, 2, scale=0.7, return_trace=True).trace.logits[1]
    torch.testing.assert_close(logits, 1.4 * routing(votes, 2, return_trace=True).trace.logits[1])


def test_gates_of_a_masked_child_may_hold_anything():
    votes, gates, keep = torch.randn(2, 7, 3, 4), torch.randn(2, 7, 3), torch.arange(7) < 5
    spoiled = gates.masked_fill(~keep[:, None], float("nan")).requires_grad_()
    out = ops.self_routing(votes, spoiled, mask=keep)
    torch.testing.assert_close(out[:2], ops.self_routing(votes[:, :5], gates[:, :5])[:2])
    (out.capsules.sum() + out.activations.square().sum()).backward()
    assert (spoiled.grad[:, 5:] == 0).all()


@pytest.mark.parametrize("name", CASES)
def test_trace_has_every_iteration_and_ends_in_the_result(name):
    votes, further, fast, _ = make(name, SIZES[2])
    plain = fast(votes, further, 3, None)
    function = getattr(ops, f"{FUNCTIONS.get(name, name.replace('-', '_'))}_routing", None) or ops.self_routing
    if name in MIXTURES:
        extra = dict(beta_a=further["beta_a"], beta_u=further["beta_u"])
    elif name == "self-routing":
        extra = dict(gates=ops.gate_logits(further["u"], further["weight"]))
    else:
        extra = {}
    out = function(votes, return_trace=True, **extra)
    R = 1 if name in ("average", "self-routing", "self-attention") else 3
    assert plain.trace is None
    assert out.trace.iterations == R
    assert out.trace.logits.shape == out.trace.coefficients.shape == (R, 3, 13, 5)
    assert torch.equal(out.trace.outputs[-1], out.capsules)
    squashed = name not in (*MIXTURES, "self-routing", "inverted-attention")
    assert (out.trace.activations is None) == squashed
    if squashed:
        torch.testing.assert_close(out.activations, out.capsules.norm(dim=2))
    else:
        assert torch.equal(out.trace.activations[-1], out.activations)


@pytest.mark.parametrize("name", CASES)
def test_half_precision_is_only_rounded_at_the_ends(name):
    votes, further, fast, _ = make(name, SIZES[2])
    rounded = votes.bfloat16()
    expected = fast(rounded.double(), further, 3, None)
    with torch.autocast("cpu", torch.bfloat16):
        got = fast(rounded, {key: x.float() for key, x in further.items()}, 3, None)
    assert got.capsules.dtype == torch.bfloat16
    assert got.activations.dtype == torch.float32
    torch.testing.assert_close(got.capsules.double(), expected.capsules, rtol=0.005, atol=0.001)  # one bf16 rounding
    # Lengths come from the rounded capsules; activations of their own are float32 throughout.
    tolerance = 1e-4 if name in (*MIXTURES, "self-routing") else 0.005
    torch.testing.assert_close(got.activations.double(), expected.activations, rtol=tolerance, atol=1e-4)


def test_wrong_arguments_say_what_is_expected():
    votes = torch.randn(2, 7, 3, 4)
    with pytest.raises(ValueError, match=r"votes must be floating point \[B, I, J, D\]"):
        ops.average_routing(votes[0])
    with pytest.raises(ValueError, match="unknown distance 'cosine'; choose 'euclidean' or 'inner'"):
        ops.k_means_routing(votes, distance="cosine")
    with pytest.raises(ValueError, match=r"centres must be \[J, D\] = \[3, 4\]"):
        ops.k_means_routing(votes, centres=torch.zeros(4, 3))
    with pytest.raises(ValueError, match=r"queries must be \[J, D\]"):
        ops.attention_routing(votes, queries=torch.zeros(4, 3))
    with pytest.raises(ValueError, match=r"beta_u must be \[J\] = \[3\]"):
        ops.em_routing(votes, torch.zeros(3), torch.zeros(4))
    with pytest.raises(ValueError, match=r"activations must be \[B, I\] = \[2, 7\]"):
        ops.vb_routing(votes, torch.zeros(3), torch.zeros(3), torch.ones(7))
    with pytest.raises(ValueError, match="prior_scatter must be a finite number above 0, got 0"):
        ops.vb_routing(votes, torch.zeros(3), torch.zeros(3), prior_scatter=0.0)
    with pytest.raises(ValueError, match="variance_floor must be a finite number above 0, got 0"):
        ops.em_routing(votes, torch.zeros(3), torch.zeros(3), variance_floor=0.0)
    with pytest.raises(ValueError, match=r"weight of the gates must be \[I, J, P\] = \[7, 3, 2\], got \[6, 3, 2\]"):
        ops.gate_logits(torch.zeros(2, 7, 2), torch.zeros(6, 3, 2))
    with pytest.raises(ValueError, match=r"norm_weight must be \[D\] = \[4\], got \[5\]"):
        ops.inverted_attention_routing(votes, norm_weight=torch.zeros(5))
    with pytest.raises(ValueError, match=r"gates must be \[B, I, J\]"):
        ops.self_routing(votes, torch.zeros(2, 7, 4))
    with pytest.raises(ValueError, match=r"start must be \[B, J, D\] = \[2, 3, 4\], got \[2, 3, 5\]"):
        ops.inverted_attention_routing(votes, start=torch.zeros(2, 3, 5))
    with pytest.raises(ValueError, match=r"priors must be \[I, J\]"):
        ops.self_attention_routing(votes, torch.zeros(3, 7))
    with pytest.raises(ValueError, match="whole number of at least 1, got 0"):
        ops.fixed_point_routing(votes, 0)
    with pytest.raises(ValueError, match="unknown squash 'flat'; choose from 'paper', 'half', 'exponential'"):
        ops.max_min_routing(votes, squash="flat")


def test_digamma_and_its_gradient():
    x = torch.logspace(-0.3, 5, 300, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(digamma(x), torch.digamma(x), rtol=1e-13, atol=1e-13)
    (got,) = torch.autograd.grad(digamma(x).sum(), x)
    expected = torch.from_numpy(scipy.special.polygamma(1, x.detach().numpy()))  # torch's own has only nine digits
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-13)
    with torch.no_grad():
        torch.testing.assert_close(digamma(x.float()).double(), digamma(x.float().double()), rtol=1e-5, atol=1e-6)
