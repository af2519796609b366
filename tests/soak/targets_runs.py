"""Readers of what a training leaves behind: run folders, checkpoints, recipes, configs, results and cards."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
from tests.soak.hostile_values import (
    joined,
    mutate_json,
    mutate_lines,
    mutate_part,
    mutate_safetensors,
    mutate_toml,
    parts_of,
)
from tests.soak.target import Target
from tests.training_runs import random_source

import torchcaps
from torchcaps.data.augment import build
from torchcaps.errors import TorchcapsError
from torchcaps.eval.recipe_facts import recipe_facts
from torchcaps.eval.runs import load_model, open_run
from torchcaps.models.declared import weights_of
from torchcaps.models.registry import _MODELS
from torchcaps.models.shipped import read_card, weights_folder
from torchcaps.train import fit, load_recipe, save_recipe
from torchcaps.train.distributed import World
from torchcaps.train.engine import Engine, build_model
from torchcaps.train.log import read_log
from torchcaps.train.overrides import check_one_length
from torchcaps.train.recipe_files import list_recipes, recipe_text
from torchcaps.train.run_folder import RunFolder
from torchcaps.train.studies.results import StudyResult, saved_recipes
from torchcaps.train.studies.settings import Settings

MOST_BUILT = 2_000_000  # parameters of a network that is built here; larger ones within the limits are the user's wish
TINY = ("model.name=small-cnn", "model.channels=1", "model.hidden=2", "data.size=8", "data.augment=[]")
TINY += ("training.steps=4", "training.batch_size=4", "log.every=1", "log.checkpoint_every=2", "log.tensorboard=off")
SHAPE = (1, 8, 8)
TIMES = ("images_per_second", "step_ms", "seconds")
MODELS = {
    "capsnet": dict(
        image_shape=(1, 10, 10), num_classes=2, conv_channels=2, conv_kernel=3, primary_types=1, primary_dim=2,
        primary_kernel=3, capsule_dim=2, routing={"name": "em", "iterations": 2}, decoder_hidden=(2,), stem=(2, 2),
    ),
    "capsnet-deep": dict(image_shape=(1, 8, 8), num_classes=2, channels=2, types=(1, 2), dim=2, decoder="none"),
    "efficient-capsnet": dict(image_shape=(1, 11, 11), num_classes=2, routing={"name": "k-means", "temperature": 2.0}),
    "matrix-capsules": dict(image_shape=(1, 17, 17), num_classes=2, A=2, B=1, C=1, D=1, pose_size=2),
    "small-cnn": dict(image_shape=(1, 8, 8), num_classes=2, channels=1, hidden=2),
}  # fmt: skip


@functools.cache
def _trained(*names: str) -> bytes:
    """Files of a small run joined, the same each time: of its times and of the machine nothing is left."""
    with tempfile.TemporaryDirectory() as scratch:
        torch.manual_seed(0)
        source = random_source(SHAPE)
        folder = fit(load_recipe("demo", TINY), run_dir=scratch, source=source, device="cpu", progress=False).folder
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        text = "".join(json.dumps({**line, **dict.fromkeys(TIMES, 1.5)}) + "\n" for line in lines)
        (folder / "metrics.jsonl").write_text(text)
        data = json.loads((folder / "environment.json").read_text())["data"]
        (folder / "environment.json").write_text(json.dumps({"seed": 0, "device": "cpu", "data": data}))
        values = folder / "checkpoints" / "step-00000004" / "training.json"
        values.write_text(json.dumps({**json.loads(values.read_text()), "seconds": 1.5}))
        return _collected(folder, names)


@functools.cache
def _engine() -> Engine:
    """One for all inputs of a process: it takes over what it resumes from, in place."""
    world = World(torch.device("cpu"))
    return Engine(load_recipe("demo", TINY), random_source(SHAPE), RunFolder(Path()), world)


def _written(folder: Path, names: tuple[str, ...], data: bytes) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    for name, part in zip(names, parts_of(data, len(names)), strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(part)
    return folder


def _collected(folder: Path, names: tuple[str, ...]) -> bytes:
    return joined(*((folder / name).read_bytes() for name in names))


def _read_log(data: bytes, scratch: Path) -> object:
    (scratch / "metrics.jsonl").write_bytes(data)
    try:
        whole = read_log(scratch / "metrics.jsonl", "train")
    except TorchcapsError:  # a damaged line, which a resumed run cuts out
        whole = None
    RunFolder(scratch).forget_after(3)
    return whole, read_log(scratch / "metrics.jsonl", "train")


RUN = ("recipe.toml", "environment.json", "metrics.jsonl", "final/config.json", "final/model.safetensors")


def _read_run(data: bytes, scratch: Path) -> object:
    """Open it as ``evaluate`` and the studio do, then as ``train --resume`` does."""
    folder = _written(scratch / "run", RUN, data)
    run = open_run(folder)
    facts = recipe_facts(run), run.seed, run.class_names, run.any_number_of_classes
    sums = [sum(line["loss"] for line in run.training_lines), sum(line["error"] for line in run.validation_lines)]
    load_model(run)
    RunFolder(folder).go_on(_engine().recipe)
    RunFolder(folder).check_data(tuple("0123456789"), 12)
    return facts, sums


CHECKPOINT = ("config.json", "training.json", "training.safetensors", "model.safetensors")
LAST = tuple(f"checkpoints/step-00000004/{name}" for name in CHECKPOINT)


def _read_checkpoint(data: bytes, scratch: Path) -> object:
    engine = _engine()
    engine.folder, engine.total_steps = RunFolder(scratch / "run"), 4
    _written(engine.folder.checkpoints / "step-00000004", CHECKPOINT, data)
    engine.resume()
    return engine.done


def _recipe_seeds(_: Path) -> list[bytes]:
    resolved = [save_recipe(load_recipe(name)) for name in ("demo", "mnist-official", "matrix-capsules")]
    return [text.encode() for text in (*map(recipe_text, list_recipes()), *resolved)]


def _read_recipe(data: bytes, scratch: Path) -> object:
    file = scratch / "own.toml"
    file.write_bytes(data)
    recipe = load_recipe(file)
    build(recipe.data.augment)
    file.write_text(save_recipe(recipe), encoding="utf-8")
    if load_recipe(file) != recipe and recipe.model.name in _MODELS:
        raise AssertionError("the recipe is another one after it was written")
    return _built(recipe)


def _built(recipe: torchcaps.train.Recipe) -> object:
    feed = SimpleNamespace(image_shape=(1, 28, 28), classes=tuple("0123456789"))
    if recipe.model.name in _MODELS and not _is_large(recipe.model.name, recipe.model.settings):
        return build_model(recipe, feed)
    return None


def _is_large(name: str, settings) -> bool:
    try:
        weights = weights_of(_MODELS[name], settings) or {}
    except (TypeError, ValueError):  # for the reader to refuse
        return False
    return sum(weight.numel() for weight in weights.values()) > MOST_BUILT


def _read_overrides(data: bytes, _: Path) -> object:
    texts = data.decode(errors="replace").split("\n")
    check_one_length(texts)
    return _built(load_recipe("demo", texts))


def _model_seeds(folder: Path) -> list[bytes]:
    for name, settings in MODELS.items():
        torchcaps.create_model(name, **settings).save_pretrained(folder / name)
    return [_collected(folder / name, ("config.json", "model.safetensors")) for name in MODELS]


def _read_model(data: bytes, scratch: Path) -> object:
    folder = _written(scratch / "model", ("config.json", "model.safetensors"), data)
    return torchcaps.from_pretrained(folder)


def _result_seeds(_: Path) -> list[bytes]:
    result = {
        "cell": "a", "seed": 1, "split": "test", "data": "mnist", "errors": 2, "examples": 500, "weights": "last",
        "precision": "fp32", "parameters": 10, "steps": 8, "epochs": 1.5, "training_seconds": 2.5, "failure": "",
        "extras": {"step 4": [3, 500]}, "members": ["a/seed0"], "wrong": "17 3",
        "couplings": {"classes": {"upper": 10, "entropy": [2.3, 1.0], "parents": [10.0, 3.0]}},
    }  # fmt: skip
    settings = {"data": "mnist", "changes": {"a": ["optimizer.lr=0.1"]}, "trials": {"a": {"b": 1.5, "c": None}}}
    return [joined(json.dumps(result).encode(), json.dumps(settings).encode(), b'name = "a"\n[training]\nsteps = 3\n')]


def _read_result(data: bytes, scratch: Path) -> object:
    folder = _written(scratch / "study", ("a/seed0/result.json", "settings.json", "a/seed0/recipe.toml"), data)
    result = StudyResult.read(folder / "a" / "seed0" / "result.json")
    settings = Settings.read(folder / "settings.json")
    recipes = list(saved_recipes(folder, "a"))
    return (result.failure or result.error.interval), [result.extra(name) for name in result.extras], settings, recipes


def _read_card(data: bytes, scratch: Path) -> object:
    (scratch / "card.json").write_bytes(data)
    card = read_card(scratch)
    return None if card is None else f"{card['error_percent']:.2f} {card['errors_stored']:,} of {card['examples']:,}"


def _card_seeds(_: Path) -> list[bytes]:
    return [file.read_bytes() for file in weights_folder().glob("*/card.json")]


OVERRIDES = (
    b"optimizer.lr=2e-3\ndata.source=folder:a b\nmodel.routing={name='em', iterations=2}\nseed=3\ntraining.steps=9",
    b"model.name=capsnet\nmodel.stem=[4, 4]\nmodel.primary_types=2\ndata.augment=[{name='shift', pixels=1}]",
)

TARGETS = (
    Target("run-log", lambda _: parts_of(_trained("metrics.jsonl"), 1), _read_log, mutate_lines),
    Target(
        "run-folder",
        lambda _: [_trained(*RUN)],
        _read_run,
        mutate_part(mutate_toml, mutate_json, mutate_lines, mutate_json, mutate_safetensors),
        0.5,
    ),
    Target(
        "checkpoint",
        lambda _: [_trained(*LAST)],
        _read_checkpoint,
        mutate_part(mutate_json, mutate_json, mutate_safetensors, mutate_safetensors),
        0.5,
    ),
    Target("recipe", _recipe_seeds, _read_recipe, mutate_toml, 0.5),
    Target("overrides", lambda _: list(OVERRIDES), _read_overrides, mutate_toml, 0.5),
    Target("model", _model_seeds, _read_model, mutate_part(mutate_json, mutate_safetensors), 0.5),
    Target("study-result", _result_seeds, _read_result, mutate_part(mutate_json, mutate_json, mutate_toml)),
    Target("card", _card_seeds, _read_card, mutate_json),
)
