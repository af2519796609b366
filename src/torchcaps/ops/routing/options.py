"""The choices of a routing by agreement, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchcaps.ops.routing.checks import check_number

__all__ = ["CENTRES", "RoutingOptions"]

CENTRES = ("sum", "capsule", "direction", "total")


@dataclass(frozen=True)
class RoutingOptions:
    """How to route.

    Attributes:
        iterations: R of Procedure 1; 1 is plain averaging.
        leaky: give every child an extra logit fixed at 0, "none of the above", whose share is dropped.
        gradient: ``"all"`` lets it flow through every iteration as in the authors' code; ``"last"`` takes the
            coefficients of the last iteration as constants, as several public versions do.
        centre: what the votes of the next iteration are compared with: the ``"sum"`` of the capsules so far (Procedure
            1), the last ``"capsule"`` alone (a fixed point), the ``"direction"`` of its sum, or the ``"total"``, J/√D
            times that sum: after the first iteration, all votes for a parent together, divided by √D.
        sharpness: the length of that direction, or a factor of that total.
        squashed: whether the last sums are squashed; else they are returned as they are, in float32 at least.
    """

    iterations: int = 3
    leaky: bool = False
    gradient: str = "all"
    centre: str = "sum"
    sharpness: float = 1.0
    squashed: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.iterations, int) or self.iterations < 1:
            raise ValueError(
                f"iterations must be a whole number of at least 1, got {self.iterations!r}; the paper uses 3"
            )
        if self.gradient not in ("all", "last"):
            raise ValueError(f"unknown gradient {self.gradient!r}; choose 'all' or 'last'")
        if self.centre not in CENTRES:
            raise ValueError(f"unknown centre {self.centre!r}; choose from {', '.join(map(repr, CENTRES))}")
        check_number("sharpness", self.sharpness)

    def total_scale(self, J: int, D: int) -> float:
        """What the sums ``[B, J, D]`` are multiplied with where the centre is the total."""
        return self.sharpness * (J + int(self.leaky)) / math.sqrt(D)
