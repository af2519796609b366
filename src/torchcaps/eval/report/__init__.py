"""One HTML file that shows what a run, or several, came to."""

from torchcaps.eval.report.write import Report, make_report

__all__ = ["Report", "make_report"]
