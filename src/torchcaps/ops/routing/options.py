"""The choices of a routing by agreement, checked once."""

from __future__ import annotations

from dataclasses import dataclass

from torchcaps.ops.routing.checks import check_number

__all__ = ["CENTRES", "RoutingOptions"]

CENTRES = ("sum", "capsule", "direction")


@dataclass(frozen=True)
class RoutingOptions:
    """How to route.

    Attributes:
        iterations: R of Procedure 1; 1 is plain averaging.
        leaky: give every child an extra logit fixed at 0, "none of the above", whose share is dropped.
        gradient: ``"all"`` lets it flow through every iteration as in the authors' code; ``"last"`` takes the
            coefficients of the last iteration as constants, as several public versions do.
        centre: what the votes of the next iteration are compared with: the ``"sum"`` of the capsules so far (Procedure
            1), the last ``"capsule"`` alone (a fixed point), or the ``"direction"`` of its sum.
        sharpness: the length of that direction.
    """

    iterations: int = 3
    leaky: bool = False
    gradient: str = "all"
    centre: str = "sum"
    sharpness: float = 1.0

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
