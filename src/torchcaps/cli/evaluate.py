"""``torchcaps evaluate``: the error of a model, with its interval."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchcaps.cli.shared import DataDir, DataName, Pairs, SplitName, print_table, progress_lines, say, to_stderr, warn

if TYPE_CHECKING:
    from torchcaps.eval import EvaluationResult

__all__ = ["register"]

NOT_DRAWN = "an ensemble has no decoder, so its reconstruction error is left out; --json has that of each member"


def register(app: typer.Typer) -> None:
    app.command("evaluate")(evaluate)


def evaluate(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL",
            help="A run folder, a model folder or checkpoint, shipped weights by name, or owner/name. Several are "
            "evaluated as one, an ensemble.",
        ),
    ],
    data: DataName = None,
    data_dir: DataDir = None,
    split: SplitName = "test",
    pairs: Pairs = 10_000,
    mistakes: Annotated[
        Path | None,
        typer.Option("--mistakes", metavar="FILE", help="CSV file to write: every wrong example, its file and scores."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every metric as JSON.")] = False,
) -> None:
    """Measure a model: error with Wilson's 95 % interval, error of each class, reconstruction, calibration.

    Several models answer together by their added scores, the lengths of the class capsules; the error of each member
    is given, too. For two classes, there are also sensitivity, specificity and precision, with each class once as the
    positive one, and the area under the ROC curve.

    **Examples**

        torchcaps evaluate runs/demo-seed0

        torchcaps evaluate runs/demo-seed0 --split validation

        torchcaps evaluate runs/demo-seed0 --data mnist-sample --json

        torchcaps evaluate runs/demo-seed0 --mistakes wrong.csv

        torchcaps evaluate runs/pairs --data multimnist:paper:mnist-sample --pairs 500

        torchcaps evaluate runs/demo-seed0 runs/demo-seed1
    """
    import json

    from torchcaps.eval import add_scores, common_examples, load_model, open_run
    from torchcaps.eval.evaluate import can_reconstruct
    from torchcaps.eval.mistakes import list_mistakes, mistakes_csv
    from torchcaps.eval.output import check_writable, write_file

    if mistakes is not None:
        check_writable(mistakes, "--mistakes")
    runs = [open_run(model) for model in models]
    networks = [load_model(run) for run in runs]
    prepared = common_examples(runs, networks, data, split, data_dir, pairs)
    examples, remarks = prepared[0], list(prepared[0].remarks)
    together = len(runs) > 1
    if together and any(map(can_reconstruct, networks)):
        remarks.append(NOT_DRAWN)
    for remark in remarks:
        warn(remark)
    results = [own.evaluate(network, progress_lines()) for own, network in zip(prepared, networks, strict=True)]
    result = add_scores(results) if together else results[0]
    members = {run.title: found for run, found in zip(runs, results, strict=True)} if together else {}
    title = f"ensemble of {len(runs)}" if together else runs[0].title
    if mistakes is not None:
        wrong = list_mistakes(result, examples)
        write_file(mistakes, mistakes_csv(wrong, examples.classes), "--mistakes")
        to_stderr(f"wrote {mistakes}: {len(wrong):,} of {len(result):,} examples", typer.colors.GREEN)
    if as_json:
        facts: dict[str, Any] = {
            "model": title,
            "data": examples.name,
            "split": examples.split_name,
            "classes": list(examples.classes),
            "remarks": remarks,
        }
        facts |= result.as_dict() | _two_class_facts(result, examples.classes)
        if together:
            facts["members"] = [{"model": folder} | found.as_dict() for folder, found in members.items()]
        say(json.dumps(facts, indent=2))
        return
    say(f"{title} on {examples.name}, {examples.split_name}: {len(result):,} examples")
    for folder, found in members.items():
        say(f"member {folder}: {found.error}")
    _print(result, examples.classes)


def _print(result: EvaluationResult, classes: tuple[str, ...]) -> None:
    from rich.table import Table

    from torchcaps.eval.evaluate import CLASS_COLUMNS

    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_row(result.error_name, str(result.error))
    if result.is_multi_label:
        facts.add_row("labels missed", str(result.label_error))
    drawn = result.mean_reconstruction_error
    if drawn is not None:
        facts.add_row("reconstruction error", f"{drawn:.2f} (sum of squared pixel differences, mean over examples)")
    expected = result.calibration.expected_error
    calibration = "– (no class was named)" if expected is None else f"{expected:.4f} (expected, 15 bins)"
    facts.add_row("calibration error", calibration)
    print_table(facts)
    if result.has_two_classes:
        _print_two_classes(result, classes)
    say("")
    first, *numbers, last = CLASS_COLUMNS
    table = Table(first, box=None, pad_edge=False)
    for name in numbers:
        table.add_column(name, justify="right")
    table.add_column(last)
    for row in result.class_rows(classes):
        table.add_row(*row)
    print_table(table)


def _print_two_classes(result: EvaluationResult, classes: tuple[str, ...]) -> None:
    from rich.table import Table

    table = Table("positive class", "", "", box=None, pad_edge=False)
    for positive, name in enumerate(classes):
        for place, (measure, share) in enumerate(result.two_class_metrics(positive).items()):
            table.add_row("" if place else name, measure, "–" if share is None else str(share))
    say("")
    print_table(table)
    curve = result.roc_curve(1)
    say(f"area under the ROC curve, of either class: {curve or '– (all examples are of one class)'}")


def _two_class_facts(result: EvaluationResult, classes: tuple[str, ...]) -> dict[str, Any]:
    if not result.has_two_classes:
        return {}
    curve = result.roc_curve(1)
    return {
        "two_classes": [result.two_class_metrics(positive).as_dict(classes) for positive in range(2)],
        "area_under_roc": None if curve is None else curve.area,
        "area_under_roc_interval": None if curve is None or curve.interval is None else list(curve.interval),
    }
