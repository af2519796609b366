"""EM routing: a Gaussian mixture is fitted to the votes of every example."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchcaps.ops.precision import without_autocast
from torchcaps.ops.routing.checks import check_number, check_shape
from torchcaps.ops.routing.family.common import (
    LEAST_ACTIVATION,
    Recorder,
    check_iterations,
    child_shares,
    prepare,
    standardized,
)
from torchcaps.ops.routing.output import RoutingOutput

__all__ = ["em_expectation", "em_maximisation", "em_routing", "inverse_temperature_at"]

SPREAD_FLOOR = 1.0  # of the variance of costs over parents, which are in nats a number of a vote


@without_autocast
def em_routing(
    votes: Tensor,
    beta_a: Tensor,
    beta_u: Tensor,
    activations: Tensor | None = None,
    iterations: int = 3,
    inverse_temperature: float = 0.01,
    variance_floor: float = 1e-4,
    standardize: bool = False,
    mask: Tensor | None = None,
    return_trace: bool = False,
) -> RoutingOutput:
    r"""Routing by expectation and maximisation, with diagonal covariances, in the log domain.

    M, with :math:`w_{ij} = r_{ij} a_i`:

    .. math:: \mu_j = \frac{\sum_i w_{ij} \hat u_{j|i}}{\sum_i w_{ij}},\quad
              \sigma_j^2 = \frac{\sum_i w_{ij} (\hat u_{j|i} - \mu_j)^2}{\sum_i w_{ij}} + \epsilon,\quad
              a_j = \mathrm{sigmoid}\Big(\lambda\big(\beta_a - \sum_h (\beta_u + \ln\sigma_{jh}) \sum_i w_{ij}\big)\Big)

    E:

    .. math:: r_{ij} = \mathrm{softmax}_j\big(\ln a_j + \ln \mathcal N(\hat u_{j|i}; \mu_j, \sigma_j^2)\big)

    "Matrix Capsules with EM Routing" (Hinton, Sabour, Frosst 2018). The capsule is the mean; it is not squashed, its
    presence is the activation.

    Args:
        beta_a, beta_u: β_a and β_u, learned; what it costs to be inactive and to code a vote.
        activations: of the lower capsules; all 1 without them.
        inverse_temperature: λ after many iterations; iteration t uses :func:`inverse_temperature_at`, which is 0.14 of
            it for the third.
        variance_floor: ε, so that one vote alone has a finite likelihood.
        standardize: take the costs relative to those of the other parents, (k_j − mean) / √(variance + 1) over j, with
            k_j = cost_j · J / (D Σ_i a_i), in nats for each number of a vote. The paper's costs grow with the number of
            children and dimensions, so that a λ for one layer may drive the activations of another to 0 or 1, where
            little is learned; standardised, they do not grow. A single parent has nothing to compare with: its
            activation is sigmoid(λ β_a).

    Shape:
        votes: ``[B, I, J, D]``. beta_a, beta_u: ``[J]``. activations: ``[B, I]``. mask: ``[B, I]`` or ``[I]``.
        Returns capsules ``[B, J, D]`` and activations ``[B, J]``.

    Example:
        >>> import torch
        >>> from torchcaps import ops
        >>> out = ops.em_routing(torch.randn(2, 7, 3, 4), torch.zeros(3), torch.zeros(3))
        >>> out.capsules.shape, out.activations.shape
        (torch.Size([2, 3, 4]), torch.Size([2, 3]))
    """
    ready = prepare(votes, mask, activations=activations)
    J, D = votes.shape[2:]
    check_number("variance_floor", variance_floor, above=0)
    check_shape("beta_a", beta_a, J=J)
    check_shape("beta_u", beta_u, J=J)
    beta_a, beta_u = beta_a.to(ready.votes.dtype), beta_u.to(ready.votes.dtype)
    recorder = Recorder(return_trace, ready.mask)
    logits = ready.votes.new_zeros(ready.votes.shape[:3])
    # What each parent would pay if all received alike and every number cost one nat: the unit of relative costs.
    even_cost = (ready.activations.sum(dim=1, keepdim=True) * (D / J)).clamp(min=LEAST_ACTIVATION)
    for iteration in range(1, check_iterations(iterations) + 1):
        responsibilities = logits.softmax(dim=2)
        means, variances, _ = em_maximisation(ready.votes, child_shares(logits, ready), variance_floor)
        received = (responsibilities * ready.activations.unsqueeze(2)).sum(dim=1)
        cost = (D * beta_u + 0.5 * variances.log().sum(dim=2)) * received
        if standardize:
            cost = standardized(cost / even_cost, SPREAD_FLOOR)
        scores = inverse_temperature_at(iteration, inverse_temperature) * (beta_a - cost)
        if return_trace:
            recorder.add(logits, responsibilities, means, scores.sigmoid())
        if iteration < iterations:
            logits = em_expectation(ready.votes, means, variances, torch.nn.functional.logsigmoid(scores))
    return RoutingOutput(means.to(votes.dtype), scores.sigmoid(), recorder.trace())


def em_maximisation(votes: Tensor, weights: Tensor, variance_floor: float) -> tuple[Tensor, Tensor, Tensor]:
    """The M step: weighted means and variances of the votes.

    Shape:
        votes: ``[B, I, J, D]``. weights: ``[B, I, J]``.
        Returns means ``[B, J, D]``, variances ``[B, J, D]`` and the sums of the weights ``[B, J]``.
    """
    totals = weights.sum(dim=1)
    shares = weights / totals.clamp(min=torch.finfo(totals.dtype).tiny).unsqueeze(1)
    means = (shares.unsqueeze(3) * votes).sum(dim=1)
    # The spread about any fixed centre, less the square of how far the mean is from it. About the mean itself the
    # second term is 0 and so is its gradient: nothing of the size of the votes is summed up for the means' sake.
    centres = means.detach()
    spread = (shares.unsqueeze(3) * (votes - centres.unsqueeze(1)).square()).sum(dim=1)
    variances = spread - (means - centres).square() + variance_floor
    return means, variances, totals


def em_expectation(votes: Tensor, means: Tensor, variances: Tensor, log_priors: Tensor) -> Tensor:
    """The E step: ln prior + ln density of every vote under every Gaussian; a softmax over j makes responsibilities.

    Shape:
        votes: ``[B, I, J, D]``. means, variances: ``[B, J, D]``. log_priors: ``[B, J]``. Returns ``[B, I, J]``.
    """
    D = votes.shape[3]
    squares = ((votes - means.unsqueeze(1)).square() / variances.unsqueeze(1)).sum(dim=3)
    constants = log_priors - 0.5 * (variances.log().sum(dim=2) + D * math.log(2 * math.pi))
    return constants.unsqueeze(1) - 0.5 * squares


def inverse_temperature_at(iteration: int, final: float) -> float:
    """λ of iteration 1, 2, …: it rises towards ``final`` as 1 − 0.95^t.

    >>> round(inverse_temperature_at(1, 1.0), 4), round(inverse_temperature_at(3, 1.0), 4)
    (0.05, 0.1426)
    """
    return final * (1 - 0.95**iteration)
