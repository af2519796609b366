"""Which checkpoints stay: enough to look back at the whole training, more of its beginning than of its end."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["COMPLETE", "is_early", "steps_to_keep"]

COMPLETE = 2  # checkpoints to resume from: the newest, and one in case it is damaged
EARLY_FACTOR = 4


def steps_to_keep(steps: Iterable[int], most: int) -> list[int]:
    """At most ``most`` of these steps, in order: the first, the newest two, and others at about equal ratios.

    The step that goes is the one without which two neighbours are closest, as a ratio. So the result follows from what
    is there, without a memory. Where a step is added each time and the first two are a factor of f apart, no two
    neighbours are further apart than f or (newest / first) ** (2 / (most − 2)), whichever is more.

    >>> kept = []
    >>> for step in range(1, 1001):
    ...     kept = steps_to_keep([*kept, step], 8)
    >>> kept
    [1, 4, 8, 29, 105, 419, 999, 1000]
    """
    kept = sorted(set(steps))
    if most < COMPLETE + 1:
        return kept[-most:]
    while len(kept) > most:
        older = range(1, len(kept) - COMPLETE)
        kept.pop(min(older, key=lambda place: kept[place + 1] / kept[place - 1] if kept[place - 1] else float("inf")))
    return kept


def is_early(step: int) -> bool:
    """Whether to keep the weights of this step even before the first checkpoint is due: 1, 4, 16 and so on."""
    while step > 1 and step % EARLY_FACTOR == 0:
        step //= EARLY_FACTOR
    return step == 1
