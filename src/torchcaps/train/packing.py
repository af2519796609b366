"""From a run folder to weights that ship: half the bytes, measured against the whole, with a card."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import save_file

from torchcaps._foreign import read_json_table
from torchcaps._version import __version__
from torchcaps.errors import TorchcapsError
from torchcaps.eval import EvaluationResult, choose_examples, load_model, open_run
from torchcaps.eval.output import check_writable, disk_errors_explained
from torchcaps.eval.runs import Run
from torchcaps.models import Model, from_pretrained
from torchcaps.models.shipped import weights_folder
from torchcaps.train.model_card import CardFacts, write_card
from torchcaps.train.run_folder import ENVIRONMENT, METRICS, RECIPE
from torchcaps.train.studies.results import RESULT, StudyResult, run_files

__all__ = ["copy_origin", "pack_weights"]

PRIVATE = ("command", "platform")  # of the environment: where it was made is nobody's business


def pack_weights(
    run_folder: str | Path,
    name: str,
    *,
    out: Path | None = None,
    records: Path | None = None,
    data_dir: Path | None = None,
    pairs: int = 10_000,
) -> CardFacts:
    """Write ``out/NAME`` (the package's own weights unless told) and say what it scores.

    Weights are stored as 16-bit floats. Both forms are measured on the test split that the recipe names, and the card
    states both counts and how many answers differ.

    Args:
        records: folder of the cell that the run belongs to, ``records/STUDY/CELL``, whose seeds the card summarises.
        pairs: how many pairs of MultiMNIST to measure on.
    """
    target = (out or weights_folder()) / name
    if "/" in name or name.startswith("."):
        raise TorchcapsError(f"{name!r} is no name for weights; use letters, digits and dashes, such as capsnet-mnist")
    if target.exists():
        raise TorchcapsError(f"{target} exists already; remove it first, or choose another name")
    run = open_run(run_folder)
    model = load_model(run)
    examples = choose_examples(run, model, None, "test", data_dir, pairs)
    check_writable(target)
    full = examples.evaluate(model)
    with disk_errors_explained(target), TemporaryDirectory(dir=target.parent, prefix=".packing-") as scratch:
        folder = Path(scratch) / name
        _save_half(model, folder)
        stored = examples.evaluate(from_pretrained(folder).eval())
        facts = _facts(name, run, model, str(examples.name), full, stored, _seeds(records), examples.remarks)
        (folder / "card.json").write_text(json.dumps(facts.as_dict(), indent=2, ensure_ascii=False) + "\n", "utf-8")
        (folder / "README.md").write_text(write_card(facts, run.recipe), encoding="utf-8")
        copy_origin(run, folder)
        folder.rename(target)
    return facts


def _save_half(model: Model, folder: Path) -> None:
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)  # the hub's card; ours says more
    half = {}
    for name, tensor in model.state_dict().items():
        small = tensor.detach().cpu().half() if tensor.is_floating_point() else tensor.cpu()
        if not torch.isfinite(small).all():
            raise TorchcapsError(f"{name} holds numbers that 16 bits cannot; these weights cannot be packed")
        half[name] = small.contiguous()
    save_file(half, folder / "model.safetensors", metadata={"format": "pt"})
    for file in folder.iterdir():
        file.chmod(0o644)


def _facts(
    name: str,
    run: Run,
    model: Model,
    data: str,
    full: EvaluationResult,
    stored: EvaluationResult,
    seeds: tuple[float, ...],
    remarks: tuple[str, ...],
) -> CardFacts:
    about, training = run.data_facts, run.recipe.get("training")
    steps = run.training_lines[-1]["step"] if run.training_lines else None
    return CardFacts(
        name=name,
        architecture=model.architecture,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        data=data,
        origin=str(about.get("origin", "")).partition("; read from")[0],
        split="test",
        stored=stored.error,
        full=full.error,
        changed=int((stored.named != full.named).any(dim=1).sum()),
        recipe=str(run.recipe.get("name", "unknown")),
        seed=run.seed,
        steps=steps,
        device=str(run.facts.get("device", "unknown device")),
        version=str(run.facts.get("torchcaps", __version__)),
        weights="averaged" if isinstance(training, dict) and training.get("ema") else "last",
        seeds=seeds,
        remarks=remarks,
    )


def _seeds(records: Path | None) -> tuple[float, ...]:
    if records is None:
        return ()
    results = [StudyResult.read(file) for file in run_files(records.parent, records.name, RESULT)]
    if not results:
        raise TorchcapsError(
            f"{records} holds no seed*/{RESULT}; give the folder of a cell, such as records/table1/mnist-best"
        )
    return tuple(result.error.percent for result in results if not result.failure)


def copy_origin(run: Run, folder: Path) -> None:
    """The recipe, which says what data belongs to the weights, the log, and the environment without what is private."""
    weights = Path(run.model_folder)
    places = (weights, weights.parent, weights.parent.parent)
    home = next((place for place in places if (place / RECIPE).is_file()), weights)
    if home.resolve() == folder.resolve():
        return
    for name in (RECIPE, METRICS):
        if (home / name).is_file():
            shutil.copyfile(home / name, folder / name)
    if (home / ENVIRONMENT).is_file():
        environment = read_json_table(home / ENVIRONMENT)
        kept = {key: value for key, value in environment.items() if key not in PRIVATE}
        data = kept.get("data")
        if isinstance(data, dict) and "origin" in data:
            kept["data"] = {**data, "origin": str(data["origin"]).partition("; read from")[0]}
        (folder / ENVIRONMENT).write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
