"""The card of shipped weights: what they are, what they learned from, how they were made, what they score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torchcaps.eval import Proportion, summarize_seeds

__all__ = ["CardFacts", "write_card"]

LICENCE = "Apache-2.0, as torchcaps itself; the data has the terms of its publisher"


@dataclass(frozen=True)
class CardFacts:
    """What a card states; ``card.json`` holds the same.

    Attributes:
        stored, full: errors of the weights as they are stored (16 bits) and as they were trained (32 bits).
        changed: examples that the two give different answers to.
        seeds: errors in % of all runs of the same recipe, this one among them, where they are known.
    """

    name: str
    architecture: str
    parameters: int
    data: str
    origin: str
    split: str
    stored: Proportion
    full: Proportion
    changed: int
    recipe: str
    seed: int | None
    steps: int | None
    device: str
    version: str
    weights: str
    seeds: tuple[float, ...] = ()
    remarks: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        facts: dict[str, Any] = dict(vars(self))
        for key in ("stored", "full"):
            share: Proportion = facts.pop(key)
            facts[f"errors_{key}"] = share.count
        facts["examples"] = self.stored.total
        facts["error_percent"] = self.stored.percent
        facts["licence"] = LICENCE
        return facts


def write_card(facts: CardFacts, recipe: Mapping[str, Any]) -> str:
    """The card as Markdown."""
    lines = [
        f"# {facts.name}",
        "",
        f"`torchcaps.from_pretrained({facts.name!r})` loads it, `torchcaps evaluate {facts.name}` measures it again.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {name} | {text} |" for name, text in _rows(facts)),
        "",
        "## Recipe",
        "",
        f"`torchcaps train recipe.toml`, the file beside this one, trains it again: `{facts.recipe}` with all that was "
        "chosen. The machine and the versions are in `environment.json`.",
        "",
        *(f"- {line}" for line in _choices(recipe)),
    ]
    if facts.remarks:
        lines += ["", "## To know before the number is believed", "", *(f"- {remark}" for remark in facts.remarks)]
    return "\n".join(lines) + "\n"


def _rows(facts: CardFacts) -> Sequence[tuple[str, str]]:
    steps = "" if facts.steps is None else f", {facts.steps:,} steps"
    rows = [
        ("network", f"{facts.architecture}, {facts.parameters:,} parameters"),
        ("data", f"{facts.data} ({facts.origin})" if facts.origin else facts.data),
        ("error", f"{facts.stored} on the {facts.split} split"),
        (
            "storage",
            f"16-bit floats, read back as 32-bit ones; in 32 bits {facts.full.count} errors, "
            f"{facts.changed} of {facts.full.total:,} answers differ",
        ),
        ("made with", f"recipe {facts.recipe}, seed {facts.seed}{steps}, {facts.weights} weights, {facts.device}"),
        ("version", f"torchcaps {facts.version}"),
        ("licence", LICENCE),
    ]
    if len(facts.seeds) > 1:
        rows.insert(3, ("all seeds", f"error in %: {summarize_seeds(facts.seeds)}"))
    return rows


def _choices(recipe: Mapping[str, Any]) -> list[str]:
    """The sections that a reader asks about first, each on a line."""
    lines = []
    for section in ("model", "data", "optimizer", "schedule", "training"):
        values = recipe.get(section)
        if isinstance(values, Mapping):
            lines.append(f"`[{section}]` " + ", ".join(f"`{key} = {value}`" for key, value in values.items()))
    return lines
