"""What the comparison compares: each routing, and the six settings that it is tuned over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from torchcaps.train.overrides import parse_overrides
from torchcaps.train.tables import toml_value

__all__ = ["CONTESTANTS", "FINALISTS", "TRIALS", "Contestant", "describe"]

TRIALS = 6  # settings for each, no more and no fewer: the same effort for all
FINALISTS = TRIALS // 2  # that a second round takes
# The higher rates came when nearly all rows had been best at 2e-3; last, so that the first four keep their names.
RATES, HIGHER = (1e-3, 2e-3), (4e-3,)
SIX_RATES = (1e-3, 5e-4, 2e-3, 4e-3, 8e-3, 16e-3)

Changes = tuple[str, ...]


@dataclass(frozen=True)
class Contestant:
    """One row of the comparison.

    Attributes:
        title: what the table calls it.
        recipe: from which the network comes; data, length and schedule are laid over it, the same for all.
        grid: the settings to choose among, each as changes of the recipe; the first is the default.
        routes: it is a routing in the common backbone; else a network of its own.
    """

    name: str
    title: str
    grid: tuple[Changes, ...]
    recipe: str = "mnist-official"
    routes: bool = True


def describe(changes: Iterable[str]) -> str:
    """Settings in words.

    >>> describe(['model.routing={name = "em", inverse_temperature = 10.0}', "optimizer.lr=0.001"])
    'inverse_temperature 10.0, rate 0.001'
    """
    table = parse_overrides(changes)
    model: dict[str, Any] = dict(table.get("model", {}))
    settings = {key: value for key, value in model.pop("routing", {}).items() if key != "name"} | model
    settings |= {"rate": table["optimizer"]["lr"]} if "optimizer" in table else {}
    return ", ".join(f"{key} {value}" for key, value in settings.items())


def _routing(
    name: str,
    setting: str | None = None,
    values: Sequence[Any] = (),
    *,
    row: str = "",
    title: str = "",
    **fixed: Any,
) -> Contestant:
    """Two values of the setting that matters most, each with three rates; without such a setting, six rates."""
    grid = []
    for rates in (RATES, HIGHER) if setting else (SIX_RATES,):
        for value in values if setting else (None,):
            table = {"name": name, **fixed, **({setting: value} if setting else {})}
            grid += [(f"model.routing={toml_value(table)}", f"optimizer.lr={rate}") for rate in rates]
    return Contestant(row or name, title or name, tuple(grid))


def _network(name: str, grid: Iterable[Changes]) -> Contestant:
    return Contestant(name, f"{name} (a network of its own)", tuple(grid), recipe=name, routes=False)


CONTESTANTS = (
    _routing("dynamic", "iterations", (3, 2)),
    _routing("fixed-point", "iterations", (3, 2)),
    _routing("normalized", "iterations", (3, 2)),
    _routing("leaky", "iterations", (3, 2)),
    _routing("max-min", "iterations", (3, 2)),
    _routing("attention", "iterations", (3, 2)),
    _routing("average", title="average (R = 1)"),
    _routing("k-means", "temperature", (10.0, 50.0), title="k-means, Euclidean distance"),
    _routing(
        "k-means", "temperature", (1.0, 10.0), row="k-means-inner", title="k-means, inner product", distance="inner"
    ),
    _routing("em", "inverse_temperature", (10.0, 3.0)),
    _routing("vb", "inverse_temperature", (1.5, 5.0)),
    _routing("self-routing"),
    _routing("inverted-attention", "iterations", (3, 2)),
    _routing("self-attention", "squash", ("exponential", "paper")),
    _network("efficient-capsnet", ((f"optimizer.lr={rate}",) for rate in SIX_RATES)),
    _network(
        "matrix-capsules",
        (
            (f"model.iterations={iterations}", f"optimizer.lr={rate}")
            for rates in ((1e-2, 3e-3), (3e-2,))
            for iterations in (2, 3)
            for rate in rates
        ),
    ),
)
