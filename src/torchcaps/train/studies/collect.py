"""Copy what a published number rests on, and nothing large, from run folders to the records."""

from __future__ import annotations

from pathlib import Path

from torchcaps.errors import TorchcapsError
from torchcaps.eval.output import write_file
from torchcaps.train.run_folder import ENVIRONMENT, METRICS, RECIPE
from torchcaps.train.studies.along import write_along
from torchcaps.train.studies.changes import write_changes
from torchcaps.train.studies.definition import Study
from torchcaps.train.studies.page import write_page
from torchcaps.train.studies.published import write_published
from torchcaps.train.studies.results import RESULT, run_files
from torchcaps.train.studies.sweep import write_sweeps
from torchcaps.train.studies.table import study_table

__all__ = ["RECORD_FILES", "collect_records", "write_study"]

RECORD_FILES = (RECIPE, ENVIRONMENT, METRICS, RESULT)


def write_study(study: Study, root: Path) -> list[Path]:
    """The table of the runs below a folder, and the figures and page where the study has them, written beside."""
    files = study_table(study, root).write(root)
    files += write_sweeps(study, root, root)
    files += write_published(study, root)
    files += write_changes(study, root)
    files += write_along(study, root)
    return [*files, *(write_page(study, root, root) if study.page else ())]


def collect_records(study: Study, root: Path, records: Path) -> int:
    """Copy recipe, environment, log and result of every finished run, and make the table anew from the copies.

    An ensemble has a result alone; it names its members, and their records stand beside it.

    Returns how many runs were copied. Records of runs that are no longer below ``root`` stay as they are.
    """
    copied = 0
    for cell in study.cells:
        for result in run_files(root, cell.name, RESULT):
            target = records / result.parent.relative_to(root)
            for name in RECORD_FILES if cell.members is None else (RESULT,):
                write_file(target / name, _content(result.parent / name), option="--records")
            copied += 1
    write_study(study, records)
    return copied


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TorchcapsError(f"{file} cannot be copied: {error.strerror or error}; a record needs it") from error
