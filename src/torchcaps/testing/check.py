"""Is my routing right? One call answers in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torchcaps.nn.routing import DynamicRouting
from torchcaps.testing.properties import PROPERTIES
from torchcaps.testing.report import Finding, RoutingReport
from torchcaps.testing.subject import Subject

__all__ = ["check_routing"]


def check_routing(
    routing: Callable[..., Any],
    *,
    leaky: bool = False,
    algorithm: str = "dynamic",
    skip: Mapping[str, str] | None = None,
) -> RoutingReport:
    """Run the property suite on a routing function or object and say in words what is wrong with it.

    A function is looked at from outside; it need not give a trace. It is called as ``routing(votes)`` with votes
    ``[B, I, J, D]`` in float64 and returns capsules ``[B, J, D]``, alone or first in a tuple. A
    :class:`torchcaps.nn.RoutingAlgorithm` says itself which properties do not apply to it, and why.

    Args:
        leaky: part of every child's vote is meant to be lost, so its coefficients sum to less than 1.
        algorithm: ``"dynamic"`` also compares the values with the paper's Procedure 1, if the function takes
            ``iterations``; any other name leaves that comparison out.
        skip: names of properties that do not apply to this algorithm, each with the reason.

    Example:
        >>> from torchcaps import ops
        >>> from torchcaps.testing import check_routing
        >>> check_routing(ops.dynamic_routing).passed
        True
        >>> print(check_routing(lambda votes: ops.squash(votes.mean(1))).failures[0])
        ✗ coefficients: coefficients sum to 1 over children, expected over parents (softmax over i where j is right)
    """
    subject = Subject(routing)
    skipped = dict(skip or {})
    if subject.algorithm is not None:
        skipped = {**subject.algorithm.not_applicable, **skipped}
        leaky = leaky or bool(getattr(subject.algorithm, "leaky", False))
        algorithm = "dynamic" if type(subject.algorithm) is DynamicRouting and not leaky else subject.name
    unknown = skipped.keys() - {prop.__name__ for prop in PROPERTIES}
    if unknown:
        names = ", ".join(prop.__name__ for prop in PROPERTIES)
        raise ValueError(f"no property is named {', '.join(sorted(unknown))}; choose from {names}")
    if leaky:
        skipped.setdefault("coefficients", "the routing is leaky")
        for name in ("one_iteration_averages", "agrees_with_procedure_1"):
            skipped.setdefault(name, "the reference is not leaky")
    else:
        skipped.setdefault("leaky_coefficients", "the routing is not leaky")
    if algorithm != "dynamic":
        skipped.setdefault("agrees_with_procedure_1", f"the algorithm is {algorithm}")
    for name in ("one_iteration_averages", "agrees_with_procedure_1"):
        if not subject.knows("iterations"):
            skipped.setdefault(name, "the function takes no iterations")
    if not subject.knows("mask"):
        skipped.setdefault("masked_children", "the function takes no mask")
    if not subject.knows("return_trace"):
        skipped.setdefault("trace_agrees", "the function gives no trace")

    findings = []
    for prop in PROPERTIES:
        claim = (prop.__doc__ or "").rstrip(".")
        if prop.__name__ in skipped:
            findings.append(Finding(prop.__name__, claim, skipped=skipped[prop.__name__]))
            continue
        try:
            problem = prop(subject)
        except Exception as error:  # a user's function may raise anything; that is a finding too
            problem = f"raised {type(error).__name__}: {error}"
        findings.append(Finding(prop.__name__, claim, problem))
        if prop.__name__ == "shape" and problem:
            break  # every other property needs outputs of the right shape
    return RoutingReport(subject.name, tuple(findings))
