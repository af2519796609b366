"""What lies in a run folder: the lines of its log, and its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypedDict

from torchcaps._foreign import json_lines
from torchcaps.ranges import Count, Number, Text, check_values

__all__ = ["checkpoint_folders", "log_lines", "noted_classes"]

Measure = Annotated[float, Number()]


class Record(TypedDict, total=False):
    """What is known of a record of the log; others may stand beside it."""

    kind: str
    step: Count
    text: str
    mode: str
    epoch: Measure
    loss: Measure
    margin: Measure
    reconstruction: Measure
    error: Measure
    lr: Measure
    examples: Measure
    images_per_second: Measure
    step_ms: Measure
    seconds: Measure
    peak_memory_bytes: Measure


def log_lines(file: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Each line of ``metrics.jsonl`` with its record; with ``None`` where it is damaged, such as cut off by a kill."""
    for line, record in json_lines(file):
        yield line, record if record is not None and _is_record(record) else None


def _is_record(record: Mapping[str, Any]) -> bool:
    try:
        check_values(Record, record)
    except ValueError:
        return False
    return "kind" in record and "step" in record


def noted_classes(facts: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The names of the classes in the ``data`` of ``environment.json``; ``None`` where they are not noted."""
    classes = facts.get("classes")
    return tuple(classes) if isinstance(classes, list) and all(map(Text(1000).holds, classes)) else None


def checkpoint_folders(folder: Path) -> dict[int, Path]:
    """The checkpoints below a run's ``checkpoints`` folder by their steps, from first to last."""
    numbered = [(path.name.removeprefix("step-"), path) for path in folder.glob("step-*")]
    found = {int(number): path for number, path in numbered if number.isdecimal() and not path.is_symlink()}
    return {step: found[step] for step in sorted(found) if found[step].is_dir()}
