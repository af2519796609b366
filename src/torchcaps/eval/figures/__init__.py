"""Figures of a run, each a function that returns a matplotlib figure; matplotlib is imported when one is made."""

from torchcaps.eval.figures.charts import (
    calibration_figure,
    confusion_figure,
    curves_figure,
    entropy_figure,
    intervals_figure,
    roc_figure,
)
from torchcaps.eval.figures.comparison import (
    BesidePublished,
    changes_figure,
    costs_figure,
    errors_figure,
    parents_figure,
    published_figure,
)
from torchcaps.eval.figures.grids import (
    captioned_pictures,
    difference_colours,
    dimension_figure,
    pairs_figure,
    picture_grid,
    reconstruction_figure,
)
from torchcaps.eval.figures.style import to_png, to_svg
from torchcaps.eval.figures.sweeps import along_figure, sweep_figure, sweeps_figure

__all__ = [
    "BesidePublished",
    "along_figure",
    "calibration_figure",
    "captioned_pictures",
    "changes_figure",
    "confusion_figure",
    "costs_figure",
    "curves_figure",
    "difference_colours",
    "dimension_figure",
    "entropy_figure",
    "errors_figure",
    "intervals_figure",
    "pairs_figure",
    "parents_figure",
    "picture_grid",
    "published_figure",
    "reconstruction_figure",
    "roc_figure",
    "sweep_figure",
    "sweeps_figure",
    "to_png",
    "to_svg",
]
