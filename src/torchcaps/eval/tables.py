"""A table of results in three forms: Markdown for a manual, CSV for programs, HTML for a browser."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from torchcaps.eval.output import write_file
from torchcaps.eval.report import markup

__all__ = ["ResultTable", "page"]


@dataclass(frozen=True)
class ResultTable:
    """Plain texts in rows; the first ``text_columns`` are words, the others numbers and set to the right.

    Example:
        >>> table = ResultTable("Errors", ("network", "error"), [("capsnet", "0.25")], "On ten digits.")
        >>> print(table.markdown(), end="")
        | network | error |
        |---|---:|
        | capsnet | 0.25 |
        <BLANKLINE>
        On ten digits.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    text_columns: int = 1

    def markdown(self) -> str:
        marks = ["---" if place < self.text_columns else "---:" for place in range(len(self.head))]
        lines = [_line(self.head), "|" + "|".join(marks) + "|", *map(_line, self.rows)]
        return "\n".join(lines) + (f"\n\n{self.note}\n" if self.note else "\n")

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.head)
        writer.writerows(self.rows)
        return text.getvalue()

    def html(self) -> str:
        """A page that needs no other file."""
        return page(self.title, [markup.table(self.head, self.rows, self.note or self.title, self.text_columns)])

    def write(self, folder: Path, name: str = "table") -> list[Path]:
        """``NAME.md``, ``NAME.csv`` and ``NAME.html`` in a folder."""
        forms = {"md": self.markdown(), "csv": self.csv(), "html": self.html()}
        return [write_file(folder / f"{name}.{suffix}", text) for suffix, text in forms.items()]


def page(title: str, body: Sequence[str]) -> str:
    """Finished pieces of HTML below a title, in the style of the report."""
    style = resources.files("torchcaps.eval.report").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body class=broad><main><h1>{escape(title)}</h1>{''.join(body)}</main></body></html>\n"
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
