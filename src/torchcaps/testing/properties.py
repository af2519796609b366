"""What must hold for every sound routing. Each property returns the problem in words, or nothing.

All run in float64 on small votes ``[B, I, J, D]`` with four different sizes, so that no axis can pass for another.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.routing.naive import dynamic_routing as reference
from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.testing.probe import orthogonal_votes, recover_coefficients
from torchcaps.testing.subject import Subject

__all__ = ["PROPERTIES"]

TOLERANCE = 1e-6


def _votes(seed: int, B: int = 3, I: int = 7, J: int = 4, D: int = 5, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(B, I, J, D, dtype=torch.float64, generator=generator)


def _far(a: Tensor, b: Tensor, tolerance: float = TOLERANCE) -> bool:
    return not torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def shape(subject: Subject) -> str:
    """Capsules are [B, J, D] and finite."""
    capsules = subject(_votes(0))
    if tuple(capsules.shape) != (3, 4, 5):
        return f"votes [B, I, J, D] = [3, 7, 4, 5] gave {list(capsules.shape)}, expected [B, J, D] = [3, 4, 5]"
    return "" if capsules.isfinite().all() else "outputs are not finite on ordinary votes"


def length_below_one(subject: Subject) -> str:
    """Every capsule is shorter than 1."""
    longest = max(float(subject(_votes(1, scale=scale)).norm(dim=2).max()) for scale in (0.1, 1.0, 30.0))
    return (
        "" if longest < 1 else f"a capsule has length {longest:.4f}, expected below 1: is it squashed over its own D?"
    )


def batch_independence(subject: Subject) -> str:
    """An example's result does not depend on the others in its batch."""
    votes = _votes(2)
    alone = torch.cat([subject(example) for example in votes.split(1)])
    if _far(subject(votes), alone):
        return "an example's result changes with the rest of its batch: are the logits shared over the batch?"
    return ""


def child_permutation(subject: Subject) -> str:
    """The order of the lower capsules does not matter."""
    votes = _votes(3)
    order = torch.tensor([4, 0, 6, 2, 5, 1, 3])
    if _far(subject(votes[:, order]), subject(votes)):
        return (
            "the result changes when the lower capsules change places: positions are mixed into the capsule vector "
            "(a view where a permute is needed?)"
        )
    return ""


def parent_permutation(subject: Subject) -> str:
    """When the upper capsules change places, so do the results."""
    votes = _votes(4)
    order = torch.tensor([2, 0, 3, 1])
    if _far(subject(votes[:, :, order]), subject(votes)[:, order]):
        return "the results do not follow when the upper capsules change places: are parents told apart by position?"
    return ""


def rotation(subject: Subject) -> str:
    """When all votes for a parent are turned, its capsule turns with them."""
    votes = _votes(5)
    generator = torch.Generator().manual_seed(6)
    turns = torch.linalg.qr(torch.randn(4, 5, 5, dtype=torch.float64, generator=generator)).Q
    turned = torch.einsum("bijd,jde->bije", votes, turns)
    if _far(subject(turned), torch.einsum("bjd,jde->bje", subject(votes), turns)):
        return (
            "a capsule does not turn with its votes: the squash runs over the wrong axis "
            "(expected over D, each capsule on its own)"
        )
    return ""


def coefficients(subject: Subject) -> str:
    """Coefficients sum to 1 over the parents of each child."""
    votes = orthogonal_votes(2, 5, 3, torch.Generator().manual_seed(7))
    found = recover_coefficients(subject, votes)
    over_parents, over_children = found.sum(dim=2), found.sum(dim=1)
    if not _far(over_parents, torch.ones_like(over_parents)):
        return ""
    if not _far(over_children, torch.ones_like(over_children)):
        return "coefficients sum to 1 over children, expected over parents (softmax over i where j is right)"
    return f"coefficients of a child sum to {float(over_parents.mean()):.3f} over its parents, expected 1"


def leaky_coefficients(subject: Subject) -> str:
    """Coefficients sum to less than 1 over the parents of each child, the rest being lost."""
    votes = orthogonal_votes(2, 5, 3, torch.Generator().manual_seed(8))
    over_parents = recover_coefficients(subject, votes).sum(dim=2)
    if ((over_parents > 0) & (over_parents < 1 - TOLERANCE)).all():
        return ""
    return f"coefficients of a child sum to {float(over_parents.mean()):.3f} over its parents, expected less than 1"


def one_iteration_averages(subject: Subject) -> str:
    """One iteration is plain averaging with coefficients 1/J."""
    votes = _votes(9)
    expected = reference(votes, None, None, RoutingOptions(1))
    if _far(subject(votes, iterations=1), expected):
        return "one iteration is not squash(Σ_i votes / J): do the logits start at 0, with a softmax over parents?"
    return ""


def zero_votes(subject: Subject) -> str:
    """Zero votes give finite capsules and a finite gradient."""
    votes = torch.zeros(2, 3, 4, 5, dtype=torch.float64, requires_grad=True)
    capsules = subject(votes)
    if not capsules.isfinite().all():
        return "zero votes give capsules that are not finite: squash divides by a length of 0"
    (gradient,) = torch.autograd.grad(capsules.sum(), votes)
    return "" if gradient.isfinite().all() else "the gradient at zero votes is not finite: squash at a length of 0"


def full_gradient(subject: Subject) -> str:
    """The gradient is that of the values, through all iterations."""
    votes = _votes(10, B=1, I=3, J=2, D=3).requires_grad_()
    weights = _votes(11, B=1, I=1, J=2, D=3).squeeze(1)
    capsules = subject(votes)
    if not capsules.requires_grad:
        return "no gradient flows to the votes: they are detached"
    (gradient,) = torch.autograd.grad((capsules * weights).sum(), votes)
    numeric, step = torch.empty_like(votes), 1e-5
    with torch.no_grad():
        for k in range(votes.numel()):
            nudge = torch.zeros(votes.numel(), dtype=torch.float64)
            nudge[k] = step
            nudge = nudge.view_as(votes)
            difference = (subject(votes + nudge) - subject(votes - nudge)) * weights
            numeric.view(-1)[k] = difference.sum() / (2 * step)
    if not _far(gradient, numeric, 1e-5):
        return ""
    cut = reference(votes, None, None, RoutingOptions(3, gradient="last"))
    (cut_gradient,) = torch.autograd.grad((cut * weights).sum(), votes)
    off = float((gradient - numeric).norm() / numeric.norm())
    how = (
        "it is exactly the gradient with the inner iterations cut off"
        if not _far(gradient, cut_gradient)
        else "part of the computation is detached"
    )
    return (
        f"the gradient is not that of the values (off by {off:.0%}): {how}; let it flow through the votes in every "
        "iteration, or call it gradient='last'"
    )


def masked_children(subject: Subject) -> str:
    """A masked child has no effect on the values and gets no gradient."""
    votes = _votes(14)
    keep = torch.tensor([True, False, True, True, False, True, True]).expand(3, 7)
    spoiled = votes.masked_fill(~keep[:, :, None, None], float("nan")).requires_grad_()
    capsules = subject(spoiled, mask=keep)
    if not capsules.isfinite().all() or _far(capsules, subject(votes[:, keep[0]])):
        return "the result with a mask is not that of the children left over: a masked vote still counts"
    (gradient,) = torch.autograd.grad(capsules.sum(), spoiled)
    return "" if (gradient[~keep] == 0).all() else "a masked child gets a gradient"


def trace_agrees(subject: Subject) -> str:
    """The trace has a step for each iteration and ends in the result."""
    votes = _votes(12)
    capsules, trace = subject.trace(votes)
    if _far(trace.outputs[-1], capsules):
        return "the last outputs of the trace are not the result"
    if trace.coefficients.shape[1:] != votes.shape[:3]:
        return f"trace.coefficients is {list(trace.coefficients.shape)}, expected [R, B, I, J]"
    return ""


def agrees_with_procedure_1(subject: Subject) -> str:
    """Values equal the paper's Procedure 1 written as loops."""
    votes = _votes(13)
    if _far(subject(votes, iterations=3), reference(votes, None, None, RoutingOptions(3))):
        return "the values differ from Procedure 1 with three iterations"
    return ""


PROPERTIES = (
    shape,
    length_below_one,
    batch_independence,
    child_permutation,
    parent_permutation,
    rotation,
    coefficients,
    leaky_coefficients,
    one_iteration_averages,
    zero_votes,
    full_gradient,
    masked_children,
    trace_agrees,
    agrees_with_procedure_1,
)
