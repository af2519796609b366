"""The family against programs that we did not write: scikit-learn and PyTorch's own attention."""

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from torchcaps import ops
from torchcaps.ops.routing.family.em import em_expectation, em_maximisation


def blobs(count=200, J=4, D=3, spread=1.0):
    """Points around J centres, and a start near them: plain data, so every parent gets the same votes."""
    generator = torch.Generator().manual_seed(3)
    centres = 5 * torch.randn(J, D, generator=generator, dtype=torch.float64)
    index = torch.arange(count) % J
    points = centres[index] + spread * torch.randn(count, D, generator=generator, dtype=torch.float64)
    start = centres + 0.5 * torch.randn(J, D, generator=generator, dtype=torch.float64)
    return points, start, points[None, :, None, :].expand(1, count, J, D)


def test_one_em_step_is_that_of_a_gaussian_mixture(recwarn):
    points, start, votes = blobs(spread=2.0)
    J, D = start.shape
    variances = torch.rand(J, D, dtype=torch.float64) + 0.5
    proportions = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    mixture = GaussianMixture(
        J,
        covariance_type="diag",
        reg_covar=1e-6,
        max_iter=1,
        means_init=start.numpy(),
        precisions_init=(1 / variances).numpy(),
        weights_init=proportions.numpy(),
    ).fit(points.numpy())
    recwarn.clear()  # one step does not converge, and scikit-learn says so

    logits = em_expectation(votes, start[None], variances[None], proportions.log()[None])
    responsibilities = logits.softmax(dim=2)
    means, found_variances, totals = em_maximisation(votes, responsibilities, variance_floor=1e-6)
    np.testing.assert_allclose(means[0], mixture.means_, atol=1e-6)
    np.testing.assert_allclose(found_variances[0], mixture.covariances_, atol=1e-6)
    np.testing.assert_allclose(totals[0] / len(points), mixture.weights_, atol=1e-6)

    after = em_expectation(votes, means, found_variances, (totals / len(points)).log()).softmax(dim=2)
    np.testing.assert_allclose(after[0], mixture.predict_proba(points.numpy()), atol=1e-6)


def test_em_routing_is_made_of_these_steps():
    """With β_a − cost the same for all parents the activations are equal, and the routing is a mixture fit."""
    votes = torch.randn(2, 9, 3, 4, dtype=torch.float64)
    zero = torch.zeros(3, dtype=torch.float64)
    out = ops.em_routing(votes, zero, zero, iterations=2, inverse_temperature=0.0, variance_floor=1e-6)
    first = em_maximisation(votes, torch.full((2, 9, 3), 1 / 3, dtype=torch.float64), 1e-6)
    logits = em_expectation(votes, first[0], first[1], torch.zeros(2, 3, dtype=torch.float64))
    means, _, _ = em_maximisation(votes, logits.softmax(dim=2), 1e-6)
    torch.testing.assert_close(out.capsules, means)
    torch.testing.assert_close(out.activations, torch.full((2, 3), 0.5, dtype=torch.float64))


def test_sharp_k_means_assigns_like_lloyd():
    points, start, votes = blobs(spread=2.0)
    lloyd = KMeans(len(start), init=start.numpy(), n_init=1, algorithm="lloyd", tol=0.0, max_iter=50).fit(
        points.numpy()
    )
    out = ops.k_means_routing(votes, iterations=50, temperature=1e6, centres=start, squash="none", return_trace=True)
    assignment = out.trace.coefficients[-1, 0]
    assert assignment.amax(dim=1).min() > 1 - 1e-9  # hard
    np.testing.assert_array_equal(assignment.argmax(dim=1), lloyd.labels_)
    np.testing.assert_allclose(out.capsules[0], lloyd.cluster_centers_, atol=1e-9)


def test_attention_with_one_query_set_is_that_of_torch():
    votes = torch.randn(2, 9, 3, 4, dtype=torch.float64, requires_grad=True)
    queries = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(2, 9) > 0.3
    by_parent = votes.transpose(1, 2)  # [B, J, I, D]: the parents take the place of the heads, each with one query
    expected = torch.nn.functional.scaled_dot_product_attention(
        queries[None, :, None].expand(2, 3, 1, 4), by_parent, by_parent, attn_mask=mask[:, None, None]
    ).squeeze(2)
    out = ops.attention_routing(votes, iterations=1, queries=queries, mask=mask, squash="none")
    torch.testing.assert_close(out.capsules, expected)
    weights = torch.randn_like(expected)
    got = torch.autograd.grad((out.capsules * weights).sum(), (votes, queries))
    wanted = torch.autograd.grad((expected * weights).sum(), (votes, queries))
    torch.testing.assert_close(got, wanted)
