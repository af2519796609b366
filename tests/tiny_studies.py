"""What the tests of studies share: a study of a few steps on the embedded digits, and how it is run."""

from __future__ import annotations

from pathlib import Path

from torchcaps.train.studies import Cell, Study, StudyOptions
from training_runs import TINY

CHANGES = (*TINY, "training.steps=3", "data.validation=0.1")


def tiny_study(*cells: Cell, split: str = "validation", base: str | None = "plain") -> Study:
    plain = Cell("plain", "demo", (), {"what": "as it is"})
    return Study("tiny", "Tiny", (plain, *cells), ("what",), split, changes=CHANGES, base=base, seeds=1, note="A note.")


def options(out: Path, **more: object) -> StudyOptions:
    return StudyOptions(out, device="cpu", progress=False, **more)
