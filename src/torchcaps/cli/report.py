"""``torchcaps report``: one HTML file that shows what runs came to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import DataDir, DataName, Pairs, SplitName, say, warn

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN", help="Run folders or models; several are compared.")],
    out: Annotated[Path, typer.Option("--out", help="HTML file to write.")] = Path("report.html"),
    figures_dir: Annotated[
        Path | None, typer.Option("--figures", metavar="DIR", help="Write every figure as PNG, too.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "",
    data: DataName = None,
    data_dir: DataDir = None,
    split: SplitName = "test",
    pairs: Pairs = 10_000,
) -> None:
    """Make a report that needs no other file: error and interval, curves, mistakes, reconstructions, calibration.

    Several runs are compared in a table; those that differ in their seed alone get mean ± s.d.

    **Examples**

        torchcaps report runs/demo-seed0 --out report.html

        torchcaps report runs/demo-seed0 runs/demo-seed1 --out comparison.html --figures figures
    """
    from torchcaps.eval import figures, open_run
    from torchcaps.eval.class_pairing import check_same_classes
    from torchcaps.eval.figures.style import matplotlib
    from torchcaps.eval.output import check_writable, write_file
    from torchcaps.eval.report import make_report
    from torchcaps.eval.report.measured import measure_run

    matplotlib()  # what would stop the end is said before the work
    check_writable(out)
    if figures_dir is not None:
        check_writable(figures_dir / "curves.png", "--figures")
    check_same_classes([open_run(run) for run in runs])
    measured = [
        measure_run(run, data, split, data_dir, pairs, slug=f"run{place}") for place, run in enumerate(runs, start=1)
    ]
    for remark in dict.fromkeys(remark for one in measured for remark in one.examples.remarks):
        warn(remark)
    made = make_report(measured, title)
    if figures_dir is not None:
        for name, drawing in made.drawings.items():
            write_file(figures_dir / f"{name}.png", figures.to_png(drawing), "--figures")
        say(f"wrote {len(made.drawings)} figures to {figures_dir}")
    for one in measured:
        say(f"{one.run.folder}: error {one.result.error}")
    write_file(out, made.page)
    say(f"wrote {out} ({len(made.page.encode()) / 1000:,.0f} kB)")
