"""A small set of cases in which every two values of different options stand together at least once."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any


def pairwise_cases(options: Mapping[str, Sequence[Any]], seed: int = 0) -> list[dict[str, Any]]:
    names = list(options)
    uncovered = {(a, x, b, y) for a, b in itertools.combinations(names, 2) for x in options[a] for y in options[b]}
    draw = random.Random(seed)
    cases = []
    while uncovered:
        candidates = [{name: draw.choice(list(options[name])) for name in names} for _ in range(60)]
        best = max(candidates, key=lambda case: len(_pairs(case) & uncovered))
        if gained := _pairs(best) & uncovered:
            uncovered -= gained
            cases.append(best)
    return cases


def _pairs(case: Mapping[str, Any]) -> set[tuple[str, Any, str, Any]]:
    return {(a, case[a], b, case[b]) for a, b in itertools.combinations(case, 2)}
