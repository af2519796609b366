"""Convolutional capsules against loops over positions, taps and types; stacks; compilers."""

import itertools

import pytest
import torch

from torchcaps import nn, ops
from torchcaps.nn.routing.calling import route


def by_loops(layer, capsules, activations):
    """Each position on its own: collect its children, form their votes one by one, route them."""
    B, H, W, C, P = capsules.shape
    K, stride = layer.kernel_size, layer.stride
    before = (K - 1) // 2 if layer.padding == "same" else 0
    rows, columns = layer.grid_shape(H, W)
    results = []
    for r, c in itertools.product(range(rows), range(columns)):
        votes, lower, present = [], [], []
        for tap, (dr, dc) in enumerate(itertools.product(range(K), range(K))):
            y, x = r * stride + dr - before, c * stride + dc - before
            if not (0 <= y < H and 0 <= x < W):
                continue
            for kind in range(C):
                u = capsules[:, y, x, kind]
                if layer.pose == "matrix":
                    m = int(P**0.5)
                    vote = [(u.view(B, m, m) @ w).flatten(1) for w in layer.weight[tap, kind]]
                else:
                    vote = [u @ w.T for w in layer.weight[tap, kind]]
                vote = torch.stack(vote, dim=1)
                if layer.coordinate_addition:
                    first, second = (0, 1) if layer.pose == "vector" else (m - 1, 2 * m - 1)
                    vote = vote.clone()
                    vote[:, :, first] += (dr + 0.5) / K
                    vote[:, :, second] += (dc + 0.5) / K
                votes.append(vote)
                lower.append(u)
                present.append(None if activations is None else activations[:, y, x, kind])
        a = None if activations is None else torch.stack(present, dim=1)
        results.append(
            route(layer.routing, torch.stack(votes, dim=1), torch.stack(lower, dim=1), a, None, layer.bias, False)
        )
    found = torch.stack([out.capsules for out in results], dim=1)
    scores = torch.stack([out.activations for out in results], dim=1)
    return found.unflatten(1, (rows, columns)), scores.unflatten(1, (rows, columns))


@pytest.mark.parametrize(
    ("settings", "dims"),
    [
        (dict(kernel_size=3, stride=2, pose="matrix", routing="em"), (4, 4)),
        (dict(kernel_size=3, pose="matrix", routing="em", padding="same", coordinate_addition=True), (16, 16)),
        (dict(kernel_size=2, stride=2, routing="dynamic", padding="same", coordinate_addition=True), (3, 5)),
        (dict(kernel_size=1, routing="vb"), (3, 2)),
        (dict(kernel_size=4, stride=3, routing="k-means"), (5, 3)),
    ],
    ids=["em", "em-same", "dynamic-same", "vb", "k-means"],
)
def test_equals_loops_over_positions(settings, dims):
    P, D = dims
    layer = nn.ConvCapsules(2, 3, P, D, dtype=torch.float64, **settings)
    capsules = torch.randn(2, 5, 6, 2, P, dtype=torch.float64, requires_grad=True)
    activations = torch.rand(2, 5, 6, 2, dtype=torch.float64, requires_grad=True)
    out = layer(capsules, activations)
    expected = by_loops(layer, capsules, activations)
    leaves = [capsules, layer.weight]
    weights = torch.randn_like(expected[0])
    for got, wanted in zip(out[:2], expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-10, atol=1e-12)
    got = torch.autograd.grad((out.capsules * weights).sum() + out.activations.sum(), leaves)
    wanted = torch.autograd.grad((expected[0] * weights).sum() + expected[1].sum(), leaves)
    torch.testing.assert_close(got, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("pose", ["vector", "matrix"])
def test_a_kernel_of_the_whole_grid_shares_its_weights(pose):
    layer = nn.ConvCapsules(
        2, 3, 4, 4, kernel_size=None, pose=pose, routing="em", coordinate_addition=True, dtype=torch.float64
    )
    capsules = torch.randn(2, 3, 5, 2, 4, dtype=torch.float64)
    activations = torch.rand(2, 3, 5, 2, dtype=torch.float64)
    out = layer(capsules, activations)
    assert out.capsules.shape == (2, 3, 4)
    votes = []
    for y, x, kind in itertools.product(range(3), range(5), range(2)):
        u, w = capsules[:, y, x, kind], layer.weight[0, kind]
        vote = torch.stack([(u.view(2, 2, 2) @ w_j).flatten(1) if pose == "matrix" else u @ w_j.T for w_j in w], dim=1)
        vote[:, :, 1 if pose == "matrix" else 0] += (y + 0.5) / 3
        vote[:, :, 3 if pose == "matrix" else 1] += (x + 0.5) / 5
        votes.append(vote)
    expected = layer.routing(torch.stack(votes, dim=1), activations=activations.flatten(1))
    torch.testing.assert_close(out.capsules, expected.capsules)
    torch.testing.assert_close(out.activations, expected.activations)
    assert layer(torch.randn(1, 7, 2, 2, 4, dtype=torch.float64)).activations.shape == (1, 3)  # any grid


@pytest.mark.parametrize("name", nn.list_routings())
def test_every_routing_works_in_a_window(name):
    layer = nn.ConvCapsules(2, 3, 4, 5, kernel_size=3, padding="same", routing=name, iterations=2)
    capsules = torch.randn(2, 4, 4, 2, 4, requires_grad=True)
    out = layer(capsules)
    assert out.capsules.shape == (2, 4, 4, 3, 5)
    (out.capsules.square().sum() + out.activations.sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())
    assert layer(capsules, return_trace=True).trace.coefficients.shape[1:] == (2 * 4 * 4, 9 * 2, 3)
    assert name in repr(layer)


@pytest.mark.parametrize("pose", ["vector", "matrix"])
@pytest.mark.parametrize("kernel_size", [3, None])
def test_mixed_dtypes_take_the_wider(pose, kernel_size):
    layer = nn.ConvCapsules(2, 3, 4, 4, kernel_size, pose=pose)
    capsules = torch.randn(2, 4, 4, 2, 4)
    assert layer(capsules.double()).capsules.dtype == torch.float64
    assert layer(capsules.bfloat16()).capsules.dtype == torch.float32


def test_a_shift_of_the_input_shifts_the_output():
    layer = nn.ConvCapsules(2, 3, 4, 4, routing="em", pose="matrix")
    capsules = torch.randn(1, 8, 8, 2, 4)
    whole = layer(capsules).capsules
    torch.testing.assert_close(layer(capsules[:, 2:]).capsules, whole[:, 2:])


def test_residual_connection():
    capsules = ops.squash(torch.randn(2, 5, 5, 4, 8))
    layer = nn.ConvCapsules(4, 4, 8, 8, padding="same")
    out = nn.ResidualCapsules(layer)(capsules)
    torch.testing.assert_close(out.capsules, (capsules + layer(capsules).capsules) / 2)
    torch.testing.assert_close(out.activations, out.capsules.norm(dim=-1))
    poses, activations = torch.randn(2, 5, 5, 4, 16), torch.rand(2, 5, 5, 4)
    layer = nn.ConvCapsules(4, 4, 16, 16, padding="same", pose="matrix", routing="em")
    out, routed = nn.ResidualCapsules(layer)(poses, activations), layer(poses, activations)
    torch.testing.assert_close(out.capsules, (poses + routed.capsules) / 2)
    torch.testing.assert_close(out.activations, (activations + routed.activations) / 2)
    torch.testing.assert_close(nn.ResidualCapsules(layer)(poses).activations, layer(poses).activations)
    with pytest.raises(ValueError, match="the same grid, types and dimensions"):
        nn.ResidualCapsules(nn.ConvCapsules(4, 4, 8, 8))


def stack(concurrent, iterations):
    torch.manual_seed(0)
    middle = {"name": "inverted-attention", "presence": False}
    layers = [
        nn.CapsuleLinear(7, 5, 4, 6, routing=middle, iterations=iterations),
        nn.CapsuleLinear(5, 3, 6, 4, routing="inverted-attention", iterations=iterations),
    ]
    return nn.CapsuleStack(layers, iterations, concurrent)


def test_concurrent_iterations():
    u = torch.randn(2, 7, 4)
    # Layer by layer is what the layers do on their own.
    one_by_one = stack(False, 3)
    expected = one_by_one.layers[1](one_by_one.layers[0](u), full=True)
    torch.testing.assert_close(one_by_one(u)[:2], expected[:2])
    # One iteration leaves nothing to do at the same time.
    torch.testing.assert_close(stack(True, 1)(u)[:2], stack(False, 1)(u)[:2])
    # By hand: the upper layer sees what the lower one held before.
    out = stack(True, 3)
    lower, upper = out.layers
    votes = ops.votes(u, lower.weight)
    first = lower.routing(votes, iterations=1).capsules
    second = lower.routing(votes, start=first, iterations=1).capsules
    start = upper.routing(ops.votes(first, upper.weight), iterations=1).capsules
    two = upper.routing(ops.votes(first, upper.weight), start=start, iterations=1)
    three = upper.routing(ops.votes(second, upper.weight), start=two.capsules, iterations=1)
    torch.testing.assert_close(stack(True, 2)(u)[:2], two[:2])
    result = out(u)
    torch.testing.assert_close(result[:2], three[:2])
    found, expected = (
        torch.autograd.grad(part.capsules[..., 0].sum() + part.activations.sum(), list(out.parameters()))
        for part in (result, three)
    )
    torch.testing.assert_close(found, expected)
    with pytest.raises(ValueError, match="need routing='inverted-attention'"):
        nn.CapsuleStack([nn.CapsuleLinear(7, 3, 4, 4)])
    typed = nn.CapsuleStack([nn.CapsuleLinear(6, 3, 4, 4, routing="inverted-attention", in_types=2)])
    assert typed(torch.randn(2, 6, 4)).capsules.shape == (2, 3, 4)
    with pytest.raises(ValueError, match="needs layers"):
        nn.CapsuleStack([])


def test_start_values_keep_what_flows_through_many_layers():
    vectors = nn.ConvCapsules(8, 16, 8, 8, kernel_size=3).weight
    assert vectors.std().item() == pytest.approx(0.88 * 2 * 16 / (9 * 8 * 8) ** 0.5, rel=0.02)  # cut off at 2 s.d.
    matrices = nn.ConvCapsules(8, 16, 16, 16, kernel_size=3, pose="matrix").weight
    torch.testing.assert_close(matrices.mean(dim=(0, 1, 2)), torch.eye(4), rtol=0, atol=0.05)


def test_primary_poses():
    layer = nn.PrimaryPoses(6, types=3, dim=4, dtype=torch.float64)
    features = torch.randn(2, 6, 5, 7, dtype=torch.float64)
    out, maps = layer(features), layer.maps(features).movedim(1, 3)  # [B, H, W, channels]
    for kind in range(3):  # the channels of a pose are neighbours; those of all activations come last
        assert torch.equal(out.capsules[..., kind, :], maps[..., 4 * kind : 4 * kind + 4])
    assert torch.equal(out.activations, maps[..., 12:].sigmoid())
    layer.reset_parameters()


def test_wrong_settings_and_inputs():
    with pytest.raises(ValueError, match="in_types ≥ 1, got 0"):
        nn.ConvCapsules(0, 3, 4, 4)
    with pytest.raises(ValueError, match="choose 'valid' or 'same'"):
        nn.ConvCapsules(2, 3, 4, 4, padding="mirror")
    with pytest.raises(ValueError, match="choose 'vector' or 'matrix'"):
        nn.ConvCapsules(2, 3, 4, 4, pose="tensor")
    with pytest.raises(ValueError, match="matrix poses need in_dim = out_dim = m²"):
        nn.ConvCapsules(2, 3, 8, 8, pose="matrix")
    layer = nn.ConvCapsules(2, 3, 4, 4)
    with pytest.raises(ValueError, match=r"must be \[B, H, W, 2, 4\]"):
        layer(torch.randn(2, 5, 5, 4, 2))
    with pytest.raises(ValueError, match=r"activations must be \[2, 5, 5, 2\]"):
        layer(torch.randn(2, 5, 5, 2, 4), torch.rand(2, 5, 5))
    with pytest.raises(ValueError, match="too small for 3×3 kernels"):
        layer(torch.randn(2, 2, 5, 2, 4))
    with pytest.raises(ValueError, match="coordinate addition needs"):
        nn.ConvCapsules(2, 3, 1, 1, coordinate_addition=True)(torch.randn(2, 5, 5, 2, 1))
