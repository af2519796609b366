"""What a check found, in words."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Finding", "RoutingReport"]


@dataclass(frozen=True)
class Finding:
    """The outcome of one property; ``problem`` is empty when it holds."""

    name: str
    claim: str
    problem: str = ""
    skipped: str = ""

    @property
    def passed(self) -> bool:
        return not self.problem

    def __str__(self) -> str:
        if self.problem:
            return f"✗ {self.name}: {self.problem}"
        return f"– {self.name}: not checked, {self.skipped}" if self.skipped else f"✓ {self.name}: {self.claim}"


@dataclass(frozen=True)
class RoutingReport:
    """All findings about one routing function; ``print`` shows them."""

    routing: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return all(finding.passed for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if not finding.passed)

    def raise_if_failed(self) -> None:
        """Raise an ``AssertionError`` that lists what is wrong."""
        if not self.passed:
            raise AssertionError(f"{self.routing} is not sound:\n" + "\n".join(map(str, self.failures)))

    def __str__(self) -> str:
        verdict = "sound" if self.passed else f"{len(self.failures)} of {len(self.findings)} properties fail"
        return "\n".join([f"{self.routing}: {verdict}", *map(str, self.findings)])
