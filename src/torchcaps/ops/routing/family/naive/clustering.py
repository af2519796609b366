"""Routings by clustering as loops: k-means, EM, variational Bayes, self-routing, inverted attention.

All but k-means return capsules ``[B, J, D]`` and activations ``[B, J]``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchcaps.ops.routing.family.naive.parts import Rows, dot, softmax, squash, to_rows, total

__all__ = ["em", "inverted_attention", "k_means", "self_routing", "vb"]


def k_means(votes: Tensor, iterations: int, distance: str, temperature: float, kind: str) -> Tensor:
    rows = to_rows(votes)
    children, parents = range(votes.shape[1]), range(votes.shape[2])
    zero = torch.zeros(len(votes), dtype=torch.float64)
    distances = [[zero for _ in parents] for _ in children]
    for _ in range(iterations):
        c = [softmax([-temperature * d for d in distances[i]]) for i in children]
        s = [total([c[i][j][:, None] * rows[i][j] for i in children]) for j in parents]
        if distance == "euclidean":
            s = [s[j] / total([c[i][j] for i in children])[:, None] for j in parents]
            distances = [[((rows[i][j] - s[j]) ** 2).sum(dim=1) for j in parents] for i in children]
        else:
            distances = [[-dot(rows[i][j], squash(s[j], "unit")) for j in parents] for i in children]
    return torch.stack([squash(s_j, kind) for s_j in s], dim=1)


def _weighted(rows: Rows, weights: Rows, j: int) -> tuple[Tensor, Tensor, Tensor]:
    """Sum of the weights ``[B]``, mean and summed squared deviation ``[B, D]`` of the votes for parent j."""
    children = range(len(rows))
    count = total([weights[i][j] for i in children])
    mean = total([weights[i][j][:, None] * rows[i][j] for i in children]) / count[:, None]
    deviation = total([weights[i][j][:, None] * (rows[i][j] - mean) ** 2 for i in children])
    return count, mean, deviation


def em(
    votes: Tensor,
    beta_a: Tensor,
    beta_u: Tensor,
    a: Tensor,
    iterations: int,
    final: float,
    floor: float,
    standardize: bool,
) -> tuple[Tensor, Tensor]:
    rows = to_rows(votes)
    B, I, J, D = votes.shape
    r: Rows = [[torch.full((B,), 1 / J, dtype=torch.float64) for _ in range(J)] for _ in range(I)]
    for t in range(1, iterations + 1):
        weights = [[r[i][j] * a[:, i] for j in range(J)] for i in range(I)]
        means, variances, costs = [], [], []
        for j in range(J):
            count, mean, deviation = _weighted(rows, weights, j)
            variance = deviation / count[:, None] + floor
            costs.append(total([(beta_u[j] + variance[:, h].sqrt().log()) * count for h in range(D)]))
            means.append(mean)
            variances.append(variance)
        if standardize:
            costs = _standardized(costs, D / J * total([a[:, i] for i in range(I)]), 1.0)
        activations = [torch.sigmoid(final * (1 - 0.95**t) * (beta_a[j] - costs[j])) for j in range(J)]
        for i in range(I):
            log_densities = []
            for j in range(J):
                exponent = -(((rows[i][j] - means[j]) ** 2) / (2 * variances[j])).sum(dim=1)
                scale = total([(2 * math.pi * variances[j][:, h]).sqrt().log() for h in range(D)])
                log_densities.append(activations[j].log() + exponent - scale)
            r[i] = softmax(log_densities)
    return torch.stack(means, dim=1), torch.stack(activations, dim=1)


def _standardized(costs: list[Tensor], unit: Tensor | float, floor: float) -> list[Tensor]:
    costs = [cost / unit for cost in costs]
    average = total(costs) / len(costs)
    deviation = (total([(cost - average) ** 2 for cost in costs]) / len(costs) + floor).sqrt()
    return [(cost - average) / deviation for cost in costs]


def vb(
    votes: Tensor,
    beta_a: Tensor,
    beta_u: Tensor,
    a: Tensor,
    iterations: int,
    prior_scatter: float,
    inverse_temperature: float,
    standardize: bool,
) -> tuple[Tensor, Tensor]:
    rows = to_rows(votes)
    B, I, J, D = votes.shape
    r: Rows = [[torch.full((B,), 1 / J, dtype=torch.float64) for _ in range(J)] for _ in range(I)]
    for _ in range(iterations):
        weights = [[r[i][j] * a[:, i] for j in range(J)] for i in range(I)]
        counts, means, scatters, log_precisions = [], [], [], []
        for j in range(J):
            count, mean, deviation = _weighted(rows, weights, j)
            kappa = 1 + count
            scatter = prior_scatter + deviation + (count / kappa)[:, None] * mean**2
            degrees = D + 1 + count
            digammas = total([torch.digamma((degrees + 1 - d) / 2) for d in range(1, D + 1)])
            counts.append(count)
            means.append(count[:, None] * mean / kappa[:, None])
            scatters.append(scatter)
            log_precisions.append(digammas + D * math.log(2) - scatter.log().sum(dim=1))
        everything = total([1 + count for count in counts])
        log_proportions = [torch.digamma(1 + count) - torch.digamma(everything) for count in counts]
        for i in range(I):
            log_likelihoods = []
            for j in range(J):
                squares = ((rows[i][j] - means[j]) ** 2 / scatters[j]).sum(dim=1)
                expected = D / (1 + counts[j]) + (D + 1 + counts[j]) * squares
                log_likelihoods.append(log_proportions[j] + (log_precisions[j] - expected) / 2)
            r[i] = softmax(log_likelihoods)
    costs = []
    for j in range(J):
        entropy = D / 2 * math.log(2 * math.pi * math.e) - log_precisions[j] / 2
        costs.append(log_proportions[j].exp() * entropy)
    if standardize:
        costs = _standardized(costs, D / J, 1e-4)
    activations = [torch.sigmoid(inverse_temperature * (beta_a[j] - beta_u[j] - costs[j])) for j in range(J)]
    return torch.stack(means, dim=1), torch.stack(activations, dim=1)


def self_routing(votes: Tensor, u: Tensor, weight: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
    """The gates are ⟨w_ij, u_i⟩: ``u`` ``[B, I, P]``, ``weight`` ``[I, J, P]``."""
    rows = to_rows(votes)
    I, J = votes.shape[1:3]
    c = [softmax([u[:, i].double() @ weight[i, j].double() for j in range(J)]) for i in range(I)]
    capsules, activations = [], []
    for j in range(J):
        share = total([c[i][j] * a[:, i] for i in range(I)])
        capsules.append(total([(c[i][j] * a[:, i])[:, None] * rows[i][j] for i in range(I)]) / share[:, None])
        activations.append(share / a.sum(dim=1))
    return torch.stack(capsules, dim=1), torch.stack(activations, dim=1)


def inverted_attention(
    votes: Tensor, iterations: int, gain: Tensor, offset: Tensor, direction: Tensor, threshold: Tensor
) -> tuple[Tensor, Tensor]:
    rows = to_rows(votes)
    B, I, J, D = votes.shape
    c: Rows = [[torch.full((B,), 1 / J, dtype=torch.float64) for _ in range(J)] for _ in range(I)]
    for _ in range(iterations):
        parents = []
        for j in range(J):
            s = total([c[i][j][:, None] * rows[i][j] for i in range(I)])
            centred = s - s.mean(dim=1, keepdim=True)
            deviation = ((centred**2).mean(dim=1, keepdim=True) + 1e-5).sqrt()
            parents.append(centred / deviation * gain + offset)
        c = [softmax([dot(rows[i][j], parents[j]) / math.sqrt(D) for j in range(J)]) for i in range(I)]
    activations = [torch.sigmoid((parent * direction).sum(dim=1) + threshold) for parent in parents]
    return torch.stack(parents, dim=1), torch.stack(activations, dim=1)
