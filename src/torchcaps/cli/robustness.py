"""``torchcaps robustness``: how far pictures can be moved before a model no longer knows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import DataDir, DataName, print_table, progress_lines, say, warn

if TYPE_CHECKING:
    from torchcaps.eval import Proportion

__all__ = ["register"]

Errors = dict[str, dict[str, "dict[float, Proportion]"]]  # by sweep, then by model


def register(app: typer.Typer) -> None:
    app.command("robustness")(robustness)


def robustness(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="Run folders, model folders or checkpoints, shipped weights by name, or owner/name; each has a line.",
        ),
    ],
    moves: Annotated[
        list[str] | None,
        typer.Option("--move", metavar="NAME", help="rotation, scale, shear or shift; all unless told."),
    ] = None,
    count: Annotated[int, typer.Option("--examples", min=1, help="Test examples, evenly spaced.")] = 1000,
    out: Annotated[Path, typer.Option("--out", help="Folder for robustness.csv and robustness.png.")] = Path(
        "robustness"
    ),
    data: DataName = None,
    data_dir: DataDir = None,
) -> None:
    """Turn, scale, slant and shift the test pictures step by step, and draw the error of each model.

    Pictures are moved about their middle and cut at their edge; what comes in is black. Several models are asked about
    the same pictures. The table says how far the error stays below 5 %.

    **Examples**

        torchcaps robustness runs/demo-seed0

        torchcaps robustness runs/demo-seed0 runs/demo-seed1 --move rotation --move scale --examples 50
    """
    from torchcaps.errors import TorchcapsError
    from torchcaps.eval import common_examples, load_model, open_run
    from torchcaps.eval.output import check_writable
    from torchcaps.eval.robustness import SWEEPS, sweep_errors

    unknown = [name for name in moves or () if name not in SWEEPS]
    if unknown:
        raise TorchcapsError(f"there is no move {unknown[0]!r}; choose from {', '.join(SWEEPS)}")
    check_writable(out / "robustness.csv")
    runs = [open_run(model) for model in models]
    networks = [load_model(run) for run in runs]
    prepared = common_examples(runs, networks, data, "test", data_dir, count)
    for remark in prepared[0].remarks:
        warn(remark)
    asked = min(count, len(prepared[0]))
    say(f"{prepared[0].name}, test: {asked:,} of {len(prepared[0]):,} examples")
    found: Errors = {}
    for name in dict.fromkeys(moves or SWEEPS):
        found[name] = {
            run.title: sweep_errors(network, examples, SWEEPS[name], count, progress_lines(f"{name}, {run.title}: "))
            for run, network, examples in zip(runs, networks, prepared, strict=True)
        }
    _print(found)
    _write(found, out)


def _print(found: Errors) -> None:
    from rich.table import Table

    from torchcaps.eval.robustness import SWEEPS, known_range

    table = Table("move", "model", box=None, pad_edge=False)
    for title in ("unmoved", "mean of the range", "below 5 %"):
        table.add_column(title, justify="right")
    for name, models in found.items():
        sweep = SWEEPS[name]
        for model, errors in models.items():
            mean = sum(error.percent for error in errors.values()) / len(errors)
            known = known_range(errors, sweep.neutral)
            reach = "nowhere" if known is None else f"{known[0]:g} … {known[1]:g}".replace("-", "−")
            table.add_row(
                f"{name}, {sweep.across.partition(',')[0]}",
                model,
                f"{errors[sweep.neutral].percent:.2f} %",
                f"{mean:.1f} %",
                reach,
            )
    print_table(table)


def _write(found: Errors, out: Path) -> None:
    import csv
    import importlib.util
    import io

    from torchcaps.eval.figures import sweeps_figure, to_png
    from torchcaps.eval.output import write_file
    from torchcaps.eval.robustness import SWEEPS

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("move", "model", "amount", "errors", "examples", "error_percent"))
    panels: dict[str, dict[str, list[tuple[float, float, float, float]]]] = {}
    for name, models in found.items():
        panel = panels.setdefault(f"{name}: {SWEEPS[name].across}", {})
        for model, errors in models.items():
            for amount, error in errors.items():
                writer.writerow((name, model, f"{amount:g}", error.count, error.total, f"{error.percent:.4f}"))
                low, high = (100 * bound for bound in error.interval)
                panel.setdefault(model, []).append((amount, error.percent, low, high))
    say(f"wrote {write_file(out / 'robustness.csv', text.getvalue())}")
    if importlib.util.find_spec("matplotlib") is None:
        warn('no picture without matplotlib; pip install "torchcaps[figures]"')
    else:
        say(f"wrote {write_file(out / 'robustness.png', to_png(sweeps_figure(panels, 'error in %')))}")
