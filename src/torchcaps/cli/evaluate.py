"""``torchcaps evaluate``: the error of a model, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import DataDir, DataName, ModelPath, Pairs, SplitName, console, progress_lines, say, warn

if TYPE_CHECKING:
    from torchcaps.eval import EvaluationResult

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("evaluate")(evaluate)


def evaluate(
    model: ModelPath,
    data: DataName = None,
    data_dir: DataDir = None,
    split: SplitName = "test",
    pairs: Pairs = 10_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print every metric as JSON.")] = False,
) -> None:
    """Measure a model: error with Wilson's 95 % interval, error of each class, reconstruction, calibration.

    **Examples**

        torchcaps evaluate runs/demo

        torchcaps evaluate runs/demo --split validation

        torchcaps evaluate runs/demo --data mnist-sample --json

        torchcaps evaluate runs/pairs --data multimnist:paper:mnist-sample --pairs 500
    """
    import json

    from torchcaps.eval import choose_examples, load_model, open_run

    run = open_run(model)
    network = load_model(run)
    examples = choose_examples(run, network, data, split, data_dir, pairs)
    for remark in examples.remarks:
        warn(remark)
    result = examples.evaluate(network, progress_lines())
    if as_json:
        facts = {
            "model": run.model_folder,
            "data": examples.name,
            "split": examples.split_name,
            "classes": list(examples.classes),
            "remarks": list(examples.remarks),
        }
        say(json.dumps(facts | result.as_dict(), indent=2))
        return
    say(f"{run.model_folder} on {examples.name}, {examples.split_name}: {len(result):,} examples")
    _print(result, examples.classes)


def _print(result: EvaluationResult, classes: tuple[str, ...]) -> None:
    from rich.table import Table

    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_row("pairs with an error" if result.is_multi_label else "error", str(result.error))
    if result.is_multi_label:
        facts.add_row("labels missed", str(result.label_error))
    drawn = result.mean_reconstruction_error
    if drawn is not None:
        facts.add_row("reconstruction error", f"{drawn:.2f} (sum of squared pixel differences, mean over examples)")
    facts.add_row("calibration error", f"{result.calibration.expected_error:.4f} (expected, 15 bins)")
    output = console()
    output.print(facts, highlight=False)
    output.print()
    confusion = result.confusion
    table = Table("class", box=None, pad_edge=False)
    for name in ("examples", "wrong", "error", "most often taken for"):
        table.add_column(name, justify="left" if name.startswith("most") else "right")
    for j, name in enumerate(classes):
        total, right = float(result.truth[:, j].sum()), float(confusion[j, j])
        others = confusion[j].clone()
        others[j] = 0
        worst = int(others.argmax())
        share = f"{100 * (total - right) / total:.2f} %" if total else "–"
        taken = f"{classes[worst]} ({float(others[worst]):.4g})" if others[worst] > 0 else ""
        table.add_row(name, f"{total:.0f}", f"{total - right:.0f}", share, taken)
    output.print(table, highlight=False)
