"""Checks that users can run on routing functions of their own."""

from torchcaps.testing.check import check_routing
from torchcaps.testing.report import Finding, RoutingReport

__all__ = ["Finding", "RoutingReport", "check_routing"]
