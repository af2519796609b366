"""Rows for ensembles: what is missing before one can be measured, and its result from those of its members."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchcaps.train.run_folder import RunFolder
from torchcaps.train.studies.definition import Cell
from torchcaps.train.studies.protocols import Measured
from torchcaps.train.studies.results import RESULT, StudyResult

__all__ = ["joined_result", "missing_members"]


def missing_members(runs: Sequence[Path]) -> list[str]:
    """What each run lacks to be a member, in words; nothing when all are finished."""
    return [f"{_name(run)} {lack}" for run in runs if (lack := _lack(run))]


def _lack(run: Path) -> str:
    if not (run / RESULT).exists():
        return "is not finished" if run.exists() else "is not begun"
    if StudyResult.read(run / RESULT).failure:
        return "failed"
    return "" if RunFolder(run).final.exists() else "has no weights"


def joined_result(cell: Cell, split: str, measured: Measured, members: Sequence[StudyResult]) -> StudyResult:
    """The result of an ensemble; what training cost is the sum over its members."""
    return StudyResult(
        cell=cell.name,
        seed=0,
        split=split,
        data=measured.data,
        errors=measured.error.count,
        examples=measured.error.total,
        weights=f"ensemble of {len(members)}",
        precision=measured.precision_name,
        parameters=sum(member.parameters for member in members),
        steps=sum(member.steps for member in members),
        epochs=sum(member.epochs for member in members),
        training_seconds=sum(member.training_seconds for member in members),
        extras=measured.counts,
        couplings=measured.couplings,
        members=tuple(f"{member.cell}/seed{member.seed}" for member in members),
        wrong=measured.wrong,
    )


def _name(run: Path) -> str:
    return f"{run.parent.name}/{run.name}"
