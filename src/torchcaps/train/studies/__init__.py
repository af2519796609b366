"""Studies: named cells × seeds → run folders → one table. The studies themselves are data, one file each."""

from torchcaps.train.studies.catalog import get_study, list_studies
from torchcaps.train.studies.checks import check_data, check_runs, check_settings
from torchcaps.train.studies.collect import collect_records, write_study
from torchcaps.train.studies.comparison import (
    COMPARED_DATA,
    comparison_study,
    finals_study,
    tuned_settings,
    tuning_study,
)
from torchcaps.train.studies.definition import Cell, Members, Study, joined
from torchcaps.train.studies.mistakes import Mistakes, find_mistakes
from torchcaps.train.studies.results import StudyResult, read_results
from torchcaps.train.studies.run import StudyOptions, run_study
from torchcaps.train.studies.settings import Settings
from torchcaps.train.studies.table import study_table

__all__ = [
    "COMPARED_DATA",
    "Cell",
    "Members",
    "Mistakes",
    "Settings",
    "Study",
    "StudyOptions",
    "StudyResult",
    "check_data",
    "check_runs",
    "check_settings",
    "collect_records",
    "comparison_study",
    "finals_study",
    "find_mistakes",
    "get_study",
    "joined",
    "list_studies",
    "read_results",
    "run_study",
    "study_table",
    "tuned_settings",
    "tuning_study",
    "write_study",
]
