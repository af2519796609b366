"""Variational Bayes routing: EM with a distribution over every mean, precision and mixing proportion."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.checks import check_number, check_shape
from torchcaps.ops.routing.family.common import Recorder, check_iterations, prepare, standardized
from torchcaps.ops.routing.family.digamma import digamma
from torchcaps.ops.routing.output import RoutingOutput

__all__ = ["Posterior", "vb_expectation", "vb_maximisation", "vb_routing"]

SPREAD_FLOOR = 1e-4  # of the variance of entropies over parents
PRIOR_COUNT = 1.0  # α₀ of the proportions and κ₀ of the means; the mean m₀ is 0


class Posterior(NamedTuple):
    """What is known about every parent.

    Shape:
        means: ``[B, J, D]``. scatter: ``[B, J, D]``, the diagonal of the inverse scale Ψ_j.
        log_proportion, log_precision, received: ``[B, J]``, E[ln π_j], E[ln det Λ_j] and Σ_i w_ij.
    """

    means: Tensor
    scatter: Tensor
    log_proportion: Tensor
    log_precision: Tensor
    received: Tensor


@without_autocast
def vb_routing(
    votes: Tensor,
    beta_a: Tensor,
    beta_u: Tensor,
    activations: Tensor | None = None,
    iterations: int = 3,
    prior_scatter: float = 1.0,
    inverse_temperature: float = 1.0,
    standardize: bool = False,
    mask: Tensor | None = None,
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Routing by variational Bayes with Gaussian–Wishart posteriors of diagonal scale.

    With :math:`w_{ij} = r_{ij} a_i`, :math:`R_j = \sum_i w_{ij}`, :math:`\bar x_j = \sum_i w_{ij} \hat u_{j|i} / R_j`:

    .. math:: \alpha_j = 1 + R_j,\ \kappa_j = 1 + R_j,\ \nu_j = D + 1 + R_j,\ m_j = \frac{R_j \bar x_j}{\kappa_j},\
              \psi_j = \psi_0 + \sum_i w_{ij} (\hat u_{j|i} - \bar x_j)^2 + \frac{R_j}{\kappa_j} \bar x_j^2

    .. math:: \ln r_{ij} = \mathrm E[\ln \pi_j] + \tfrac12 \mathrm E[\ln\det\Lambda_j] - \tfrac D2 \ln 2\pi
              - \tfrac12 \Big(\frac{D}{\kappa_j} + \nu_j \sum_h \frac{(\hat u_{j|i} - m_j)_h^2}{\psi_{jh}}\Big)
              + \text{const}

    .. math:: a_j = \mathrm{sigmoid}\Big(\lambda \Big(\beta_a - \beta_u - e^{\mathrm E[\ln \pi_j]}\,
              \big(\tfrac D2 \ln 2\pi e - \tfrac12 \mathrm E[\ln\det\Lambda_j]\big)\Big)\Big)

    "Capsule Routing via Variational Bayes" (Ribeiro, Leontidis, Kollias 2020). The priors keep a Gaussian from
    shrinking onto one vote. Their code normalises means and activations over the batch besides; this does not, so
    that an example's result is its own.

    Args:
        beta_a, beta_u: learned offsets of the activation.
        prior_scatter: ψ₀, the spread that a parent expects before it sees a vote.
        inverse_temperature: λ, 1 in the paper.
        standardize: take the entropies, weighted by e^E[ln π_j], relative to those of the other parents,
            (k_j − mean) / √(variance + 10⁻⁴) over j, with k_j that entropy · J / D; it stands where the authors' code
            normalises over the batch.

    Shape:
        votes: ``[B, I, J, D]``. beta_a, beta_u: ``[J]``. activations: ``[B, I]``. mask: ``[B, I]`` or ``[I]``.
        Returns capsules ``[B, J, D]`` and activations ``[B, J]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> ops.vb_routing(torch.randn(2, 7, 3, 4), torch.zeros(3), torch.zeros(3)).activations.shape
        torch.Size([2, 3])
    """
    ready = prepare(votes, mask, activations=activations)
    J, D = votes.shape[2:]
    check_shape("beta_a", beta_a, J=J)
    check_shape("beta_u", beta_u, J=J)
    check_number("prior_scatter", prior_scatter, above=0)
    recorder = Recorder(return_trace, ready.mask)
    offset = (beta_a - beta_u).to(ready.votes.dtype)
    logits = ready.votes.new_zeros(ready.votes.shape[:3])
    for remaining in reversed(range(check_iterations(iterations))):
        responsibilities = logits.softmax(dim=2)
        posterior = vb_maximisation(ready.votes, responsibilities * ready.activations.unsqueeze(2), prior_scatter)
        if return_trace or not remaining:
            cost = _weighted_entropy(posterior)
            if standardize:
                cost = standardized(cost / (D / J), SPREAD_FLOOR)  # in nats a number, for an even share
            present = (inverse_temperature * (offset - cost)).sigmoid()
            recorder.add(logits, responsibilities, posterior.means, present)
        if remaining:
            logits = vb_expectation(ready.votes, posterior)
    return RoutingOutput(posterior.means.to(votes.dtype), present, recorder.trace())


def vb_maximisation(votes: Tensor, weights: Tensor, prior_scatter: float) -> Posterior:
    """Update what is known about the parents from the weighted votes ``[B, I, J, D]`` and ``[B, I, J]``."""
    D = votes.shape[3]
    count = weights.sum(dim=1)  # [B, J]
    shares = weights / count.clamp(min=torch.finfo(count.dtype).tiny).unsqueeze(1)
    average = (shares.unsqueeze(3) * votes).sum(dim=1)
    shrink = (count / (PRIOR_COUNT + count)).unsqueeze(2)
    # About a fixed centre, as in em_maximisation: the second term is 0 and so is its gradient.
    centres = average.detach()
    spread = (weights.unsqueeze(3) * (votes - centres.unsqueeze(1)).square()).sum(dim=1)
    spread = spread - count.unsqueeze(2) * (average - centres).square()
    scatter = prior_scatter + spread + PRIOR_COUNT * shrink * average.square()
    degrees = D + 1 + count
    steps = torch.arange(D, dtype=votes.dtype, device=votes.device)
    log_precision = (
        digamma(0.5 * (degrees.unsqueeze(2) - steps)).sum(dim=2) + D * math.log(2) - scatter.log().sum(dim=2)
    )
    concentration = PRIOR_COUNT + count
    log_proportion = digamma(concentration) - digamma(concentration.sum(dim=1, keepdim=True))
    return Posterior(shrink * average, scatter, log_proportion, log_precision, count)


def vb_expectation(votes: Tensor, posterior: Posterior) -> Tensor:
    """Expected log likelihood of every vote under every parent, ``[B, I, J]``; a softmax over j makes shares."""
    D = votes.shape[3]
    squares = ((votes - posterior.means.unsqueeze(1)).square() / posterior.scatter.unsqueeze(1)).sum(dim=3)
    spread = D / (PRIOR_COUNT + posterior.received)
    constants = posterior.log_proportion + 0.5 * (posterior.log_precision - D * math.log(2 * math.pi) - spread)
    return constants.unsqueeze(1) - 0.5 * (D + 1 + posterior.received).unsqueeze(1) * squares


def _weighted_entropy(posterior: Posterior) -> Tensor:
    """How undecided each parent is, weighted by its share: ``[B, J]``."""
    D = posterior.means.shape[2]
    entropy = 0.5 * (D * math.log(2 * math.pi * math.e) - posterior.log_precision)
    return posterior.log_proportion.exp() * entropy
