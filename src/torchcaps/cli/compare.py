"""``torchcaps compare``: every routing in the same network, on the same data, with the same budget and seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import DataDir, warn
from torchcaps.cli.study_runs import (
    EXIT_UNFINISHED,
    Budget,
    Changes,
    Device,
    Quiet,
    Records,
    Seed,
    TableOnly,
    choose_seeds,
    read_time,
    run_pieces,
    show_study,
)

if TYPE_CHECKING:
    from torchcaps.train.studies import Settings

__all__ = ["register"]

TRIALS_FOLDER, FINALS_FOLDER = "tune", "finals"


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)


def compare(
    data: Annotated[
        str, typer.Option("--data", metavar="NAME", help="mnist, fashion, multimnist or coil20.")
    ] = "mnist",
    routing: Annotated[
        list[str] | None,
        typer.Option("--routing", metavar="PATTERN", help="Only these rows, such as em or 'k-means*'; repeatable."),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose the settings first, six for each row, on held-out examples.")
    ] = False,
    finals: Annotated[
        bool, typer.Option("--finals", help="Choose once more among the best three of each row; after --tune.")
    ] = False,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", help="Settings that --tune chose elsewhere; OUT/settings.json unless told."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option("--seeds", min=1, help="Seeds 0 to N − 1 of each row; 3, or 1 with --tune."),
    ] = None,
    seed: Seed = None,
    budget: Budget = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of the runs; else runs/compare-DATA.")] = None,
    data_dir: DataDir = None,
    changes: Changes = None,
    scale: Annotated[float, typer.Option("--scale", help="Length of every run times this; the warm-up follows.")] = 1.0,
    device: Device = "auto",
    test_pairs: Annotated[
        int, typer.Option("--test-pairs", min=1, help="Pairs of MultiMNIST to measure, evenly spaced.")
    ] = 100_000,
    table_only: TableOnly = False,
    records: Records = None,
    quiet: Quiet = False,
) -> None:
    """Train every routing in the same network and write the table that compares them.

    First --tune: six settings for each row, on held-out examples of the training split; the best go to
    OUT/settings.json. Short runs favour high rates, so --finals tries the best three again, with three seeds, at the
    length that the comparison will have. Then the same command without either trains each row with its settings on
    the whole training split and looks at the test split, once a run: error, error on turned pictures, images/s, peak
    memory, parameters, coupling entropy, parents of a child. A run is resumed where the last call's time ended, and a
    finished one is never repeated. The table is written as Markdown, CSV and HTML, the figures on comparison.html,
    from the records alone. Exit status 3: the time was over before all was done.

    **Examples**

        torchcaps compare --data mnist --tune --scale 0.1 --budget 8m

        torchcaps compare --data mnist --finals --scale 0.4 --budget 8m

        torchcaps compare --data mnist --scale 0.4 --budget 8m --records records/compare-mnist

        torchcaps compare --data coil20 --scale 0.5 --settings runs/compare-mnist/settings.json --seeds 1

        torchcaps compare --data multimnist --routing dynamic --routing "k-means*" --seeds 1 --scale 0.1

        torchcaps compare --data mnist --table-only --out records/compare-mnist
    """
    from torchcaps.train.studies import (
        StudyOptions,
        check_data,
        check_runs,
        check_settings,
        comparison_study,
        finals_study,
        tuned_settings,
        tuning_study,
    )
    from torchcaps.train.studies.settings import SETTINGS

    folder = out or Path("runs") / f"compare-{data}"
    chosen: Settings | None = None
    if tune and finals:
        raise typer.BadParameter("--tune comes first, --finals after it; give one of them")
    if tune or finals:
        place = folder / (FINALS_FOLDER if finals else TRIALS_FOLDER)
        study = finals_study(data, folder / TRIALS_FOLDER) if finals else tuning_study(data)
        patterns = tuple(f"{pattern}.*" for pattern in routing or ())
        copies = records and records / place.name
    else:
        chosen = _settings(folder, settings)
        study, place = comparison_study(data, chosen), folder
        patterns, copies = tuple(routing or ()), records
    check_settings(study, place, changes or ())
    check_data(study, place, changes or ())
    if table_only:
        check_runs(study, place)
    if chosen is None and not (tune or finals):
        warn(f"there is no {folder / SETTINGS}: every row has its default settings; choose them with --tune first")
    finished = True
    if not table_only:
        options = StudyOptions(
            out=place,
            cells=patterns,
            seeds=choose_seeds(seeds, seed),
            budget=None if budget is None else read_time(budget),
            changes=tuple(changes or ()),
            scale=scale,
            device=device,
            data_dir=data_dir,
            limit=test_pairs,
            progress=not quiet,
        )
        finished = run_pieces(study, options, copies)
    if tune or finals:
        rounds = folder / TRIALS_FOLDER, folder / FINALS_FOLDER
        chosen = tuned_settings(data, *rounds).added_to(folder / SETTINGS)
    if chosen is not None:
        warn(f"settings of {len(chosen.changes)} rows: {chosen.write(folder)}")
        if records is not None:
            chosen.write(records, "--records")
    show_study(study, place, copies)
    if not finished:
        raise typer.Exit(EXIT_UNFINISHED)


def _settings(folder: Path, given: Path | None) -> Settings | None:
    """What to compare with: the file that was named, else the one beside the runs."""
    from torchcaps.train.studies import Settings
    from torchcaps.train.studies.settings import SETTINGS

    file = given or folder / SETTINGS
    return Settings.read(file) if given is not None or file.is_file() else None
