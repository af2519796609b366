"""Studies: cells run once, in pieces, without a look at the test split."""

from __future__ import annotations

import gc
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import torchcaps
from tiny_studies import options, tiny_study
from torchcaps.data import MultiMNIST, load
from torchcaps.errors import TorchcapsError
from torchcaps.eval import SWEEPS, Sweep, evaluate, evaluate_pairs, spread_pairs
from torchcaps.train import fit, load_recipe
from torchcaps.train.engine import Engine
from torchcaps.train.guard import NonFiniteError
from torchcaps.train.studies import (
    Cell,
    get_study,
    list_studies,
    protocols,
    read_results,
    run_study,
    study_table,
)
from torchcaps.train.studies.definition import scaled
from torchcaps.train.studies.measure import Measurement, share_of
from torchcaps.train.studies.search import SEARCHES
from torchcaps.train.studies.sweep import banded, sweep_points, write_sweeps
from torchcaps.train.tables import differing_keys
from training_runs import TINY, same_weights, tiny_recipe, train_tiny, weights

RECORDS = Path(__file__).parents[2] / "records"
SHIPPED = [get_study(name) for name in list_studies() if name != "search"] + list(SEARCHES.values())


def silent(text: str) -> None:
    pass


@pytest.mark.parametrize("study", SHIPPED, ids=lambda study: study.name)
def test_shipped_studies_are_sound(study):
    names = [cell.name for cell in study.cells]
    assert len(set(names)) == len(names)
    assert study.base is None or study.base in names
    assert not study.sweeps or len(banded(study, {})) == len(names)  # no curve takes the place of another
    for cell in study.cells:
        recipe = study.recipe(cell, seed=1)
        assert recipe.seed == 1
        assert recipe.log.tensorboard == "off"
        assert set(cell.words) == set(study.columns)
        if study.split == "validation":  # choices: never on the test split, and on 10,000 of 60,000 digits
            assert round(60_000 * recipe.data.validation) == 10_000
        elif study.protocol == "split":
            assert recipe.data.validation == 0
        settings = {"image_shape": (1, 40, 40) if study.name == "affine" else (1, 28, 28)}
        with torch.device("meta"):
            torchcaps.create_model(recipe.model.name, **settings, **recipe.model.settings)


def test_every_cell_differs_from_the_base_by_what_it_says():
    for study in (get_study("ablation"), get_study("writers"), *SEARCHES.values()):
        recipes = [study.recipe(cell, seed=0) for cell in study.cells]
        assert len({str(recipe) for recipe in recipes}) == len(recipes)


def network(recipe):
    with torch.device("meta"):
        return torchcaps.create_model(recipe.model.name, **recipe.model.settings)


def test_own_recipes_keep_to_their_rules():
    best, opened = load_recipe("mnist-best"), load_recipe("mnist-open")
    assert best.data.augment == ({"name": "shift", "pixels": 2},)
    assert network(best).settings == network(load_recipe("mnist-official")).settings  # the paper's
    for recipe in (best, opened):
        assert sum(parameter.numel() for parameter in network(recipe).parameters()) <= 8_215_728
        assert recipe.data.validation == 0
        assert recipe.model.settings["iterations"] == 3


def test_a_search_lists_what_was_tried_and_says_where_it_began(tmp_path):
    study = SEARCHES["mnist-best"]
    assert study_table(study, tmp_path).rows == []
    assert "optimizer.lr=2e-3" in study_table(study, tmp_path).note
    assert len(study_table(get_study("table1"), tmp_path).rows) == len(get_study("table1").cells)


def test_choices_by_writers_hold_other_digits_out_for_each_seed():
    study = get_study("writers")
    for seed in range(3):
        section = study.recipe(study.cells[0], seed).data
        assert (section.fold, section.validation_consecutive) == (seed, True)


@pytest.mark.parametrize("study", [*SEARCHES.values(), get_study("writers")], ids=lambda study: study.name)
def test_every_record_of_a_search_has_a_cell_with_its_recipe(study):
    """A cell that is renamed or changed would drop its runs from the table, or name them wrongly."""
    cells = {cell.name: cell for cell in study.cells}
    saved = sorted((RECORDS / study.name).glob("*/seed*/recipe.toml"))
    assert saved
    for file in saved:
        record = load_recipe(file)
        made = study.recipe(cells[file.parent.parent.name], record.seed)
        assert network(record).settings == network(made).settings  # defaults need not be written down
        free = ("model.", "log.", "training.epochs", "schedule.warmup_steps", "schedule.decay_steps")  # by --scale
        assert [key for key in differing_keys(record, made) if not key.startswith(free)] == []


def test_scale_shortens_the_decay_with_the_run():
    recipe = scaled(load_recipe("mnist-official"), 0.1)
    assert (recipe.training.steps, recipe.schedule.decay_steps) == (30_000, 200)
    best = scaled(load_recipe("mnist-best", ["training.epochs=200"]), 0.5)
    assert (best.training.epochs, best.training.steps, best.schedule.warmup_steps) == (100, 0, 250)
    for factor in (0, math.nan, math.inf):
        with pytest.raises(TorchcapsError, match="above 0"):
            scaled(recipe, factor)


def engines_alive():
    gc.collect()
    return sum(type(thing) is Engine for thing in gc.get_objects())


def test_a_study_in_pieces_gives_the_runs_of_one_piece(tmp_path, monkeypatch):
    engines_of_others = engines_alive()
    study = tiny_study(Cell("fast", "demo", ("optimizer.lr=1e-2",), {"what": "a higher rate"}))
    with monkeypatch.context() as patch:
        patch.setattr("torchcaps.train.studies.run.fit", lambda recipe, **more: fit(recipe, **{**more, "seconds": 0}))
        said: list[str] = []
        calls = [run_study(study, options(tmp_path / "pieces"), said.append) for _ in range(5)]
    # A piece takes one step, a run has three; the third piece ends a run and begins the next.
    assert calls == [False, False, False, False, True]
    assert "time is over: 1 of 2 runs are done; the same command goes on" in said
    assert run_study(study, options(tmp_path / "whole"), silent)
    for cell in ("plain", "fast"):
        pieces, whole = tmp_path / "pieces" / cell / "seed0", tmp_path / "whole" / cell / "seed0"
        assert same_weights(weights(pieces), weights(whole))
        facts = [json.loads((folder / "result.json").read_text()) for folder in (pieces, whole)]
        assert min(fact.pop("training_seconds") for fact in facts) > 0
        assert facts[0] == facts[1]
        assert not (pieces / "checkpoints").exists()
    assert engines_alive() <= engines_of_others  # a run frees what the last one held

    def no_more(*arguments: object, **keywords: object) -> None:
        raise AssertionError("a finished run was repeated")

    monkeypatch.setattr("torchcaps.train.studies.run.fit", no_more)
    monkeypatch.setattr("torchcaps.train.studies.run.from_pretrained", no_more)
    assert run_study(study, options(tmp_path / "whole"), silent)
    with pytest.raises(TorchcapsError, match=r"other settings \(training\.steps changed\)"):
        run_study(study, options(tmp_path / "whole", changes=("training.steps=4",)), silent)


def test_a_study_on_held_out_digits_never_reads_the_test_split(tmp_path, monkeypatch):
    class Poison:
        def __getattribute__(self, name: str) -> object:
            raise AssertionError(f"the study asked the test split for {name}")

        def __len__(self) -> int:
            raise AssertionError("the study asked the test split for its length")

    def poisoned(*arguments: object) -> object:
        source = load("mnist-sample")
        object.__setattr__(source, "test", Poison())
        return source

    monkeypatch.setattr("torchcaps.train.studies.run.load_source", poisoned)
    assert run_study(tiny_study(), options(tmp_path), silent)
    (result,) = read_results(tmp_path, ["plain"])["plain"]
    assert (result.split, result.examples) == ("validation", 100)
    assert len(result.wrong) == result.errors > 0
    assert set(result.wrong) < set(range(100))
    assert result.weights == "averaged"
    with pytest.raises(AssertionError, match="asked the test split"):
        run_study(tiny_study(split="test"), options(tmp_path / "test"), silent)


def test_a_run_that_fails_is_noted_and_the_others_go_on(tmp_path, monkeypatch):
    def fail_first(recipe, **keywords):
        if recipe.optimizer.lr > 1:
            Path(keywords["run_dir"]).mkdir(parents=True)
            (Path(keywords["run_dir"]) / "metrics.jsonl").touch()
            raise NonFiniteError("the loss became nan")
        return fit(recipe, **keywords)

    monkeypatch.setattr("torchcaps.train.studies.run.fit", fail_first)
    study = tiny_study(Cell("wild", "demo", ("optimizer.lr=100.0",), {"what": "too much"}))
    said: list[str] = []
    assert run_study(study, options(tmp_path), said.append)
    assert any("wild, seed 0: failed" in line for line in said)
    rows = {row[0]: row for row in study_table(study, tmp_path).rows}
    assert rows["too much"][1:4] == ("failed", "–", "0, 1 failed")
    assert rows["as it is"][3] == "1"

    said.clear()
    assert run_study(study, options(tmp_path, measure_again=True), said.append)
    assert [line.partition(":")[0] for line in said] == ["plain, seed 0"]  # what failed is not trained again


def test_counting_agrees_with_evaluation():
    torch.manual_seed(1)
    source, model = load("mnist-sample"), torchcaps.create_model("small-cnn", channels=2, hidden=8).eval()
    measurement = Measurement(tiny_recipe(), source, "test", torch.device("cpu"))
    wrong = measurement.errors(model)
    assert share_of(wrong) == evaluate(model, source.test).error
    assert measurement.positions(wrong) == tuple(sorted(evaluate(model, source.test).wrong().tolist()))
    pairs_model = torchcaps.create_model("small-cnn", image_shape=(1, 36, 36), channels=2, hidden=8, multi_label=True)
    recipe = tiny_recipe("data.task=multimnist", "data.augment=[]", "data.variant=official")
    measurement = Measurement(recipe, source, "test", torch.device("cpu"), pairs=300)
    wrong = measurement.errors(pairs_model)
    multi = MultiMNIST(source.test, "official")
    assert share_of(wrong) == evaluate_pairs(pairs_model, multi, spread_pairs(multi, 300)).error
    assert measurement.positions(wrong) is None


def test_a_measurement_that_runs_out_of_time_leaves_no_result(tmp_path, monkeypatch):
    study = tiny_study(split="test", base=None)
    monkeypatch.setattr("torchcaps.train.studies.measure.SMALL_BATCH", 10)
    assert run_study(study, options(tmp_path, budget=1000.0), silent)
    (tmp_path / "plain" / "seed0" / "result.json").unlink()
    assert not run_study(study, options(tmp_path, budget=0.01), silent)
    assert not (tmp_path / "plain" / "seed0" / "result.json").exists()
    assert run_study(study, options(tmp_path), silent)


def test_finished_runs_can_be_measured_on_more_examples(tmp_path):
    changes = ("data.task=multimnist", "data.augment=[]", "data.validation=0.0")
    study = tiny_study(split="test", base=None)
    assert run_study(study, options(tmp_path, changes=changes, limit=20), silent)
    before = weights(tmp_path / "plain" / "seed0")
    for again, expected in ((False, 20), (True, 30)):
        assert run_study(study, options(tmp_path, changes=changes, limit=30, measure_again=again), silent)
        (result,) = read_results(tmp_path, ["plain"])["plain"]
        assert (result.examples, result.wrong) == (expected, None)
    assert same_weights(before, weights(tmp_path / "plain" / "seed0"))


def test_what_cannot_be_measured_again_or_read_is_said_before_any_work(tmp_path, monkeypatch):
    study = tiny_study(split="test", base=None)
    assert run_study(study, options(tmp_path), silent)
    run = tmp_path / "plain" / "seed0"
    shutil.rmtree(run / "final")  # as in records
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(TorchcapsError, match="seed0 has no weights to measure again"):
        run_study(study, options(tmp_path, measure_again=True), silent)
    assert (run / "metrics.jsonl").read_bytes() == before  # it was not trained anew
    (run / "result.json").write_text("{")
    monkeypatch.setattr("torchcaps.train.studies.run.fit", None)
    with pytest.raises(TorchcapsError, match=r"result\.json is damaged"):
        run_study(study, options(tmp_path, seeds=2), silent)


@pytest.mark.parametrize(
    ("log", "reason"), [("{", r"metrics\.jsonl is damaged"), ("[1]\n", "is damaged"), ("", "does not say how long")]
)
def test_a_damaged_log_is_named(tmp_path, log, reason):
    study = tiny_study()
    assert run_study(study, options(tmp_path), silent)
    run = tmp_path / "plain" / "seed0"
    (run / "result.json").unlink()
    (run / "metrics.jsonl").write_text(log)
    with pytest.raises(TorchcapsError, match=reason):
        run_study(study, options(tmp_path), silent)


def test_affine_robustness_measures_copies_and_sweeps(tmp_path, monkeypatch):
    assert [len(sweep.amounts) for sweep in SWEEPS.values()] == [19, 11, 9, 11]
    monkeypatch.setattr(protocols, "SWEEPS", {"rotation": Sweep("rotate", (-90, 0, 90), "")})
    study = get_study("affine")
    changes = (*TINY, "training.steps=4", "log.validate_every=2", "data.source=mnist-sample")
    chosen = options(tmp_path, cells=("capsnet",), seeds=1, limit=40, changes=(*changes, "data.validation=0.02"))
    assert run_study(study, chosen, silent)
    (result,) = read_results(tmp_path, ["capsnet"])["capsnet"]
    assert (result.data, result.examples) == ("affnist-like:mnist-sample", 40)
    assert result.extra("held out").total == 20
    assert result.extra("away from the edge").total == 40
    (points,) = sweep_points(study, "rotation", tmp_path).values()
    assert [(place, deviation) for place, _, deviation in points] == [(-90, None), (0, None), (90, None)]  # one seed
    assert {file.name for file in write_sweeps(study, tmp_path, tmp_path)} == {"rotation.csv", "rotation.png"}
    with pytest.raises(TorchcapsError, match=r"log\.validate_every changed"):  # it decides where a run stops
        run_study(study, replace(chosen, changes=(*chosen.changes, "log.validate_every=1")), silent)
    row = study_table(study, tmp_path).rows[0]
    assert row[study_table(study, tmp_path).head.index("held out")] != "–"


def test_unknown_studies_and_cells():
    with pytest.raises(TorchcapsError, match="there is no study 'table2'; choose from table1"):
        get_study("table2")
    with pytest.raises(TorchcapsError, match="search needs --recipe, one of mnist-best, mnist-open"):
        get_study("search")
    with pytest.raises(TorchcapsError, match="--recipe belongs to search"):
        get_study("table1", "mnist-best")
    with pytest.raises(TorchcapsError, match="no cell 'mnist-r33'; did you mean 'mnist-r3'"):
        get_study("table1").choose(["mnist-r33"])
    assert [cell.name for cell in get_study("table1").choose(["multimnist-r?"])] == ["multimnist-r1", "multimnist-r3"]


def test_a_run_stops_at_the_first_look_that_finds_the_accuracy(tmp_path):
    changes = ("data.validation=0.1", "training.steps=12", "log.validate_every=2", "training.ema=0.0")
    whole = train_tiny(tmp_path / "whole", *changes)
    looks = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines() if "validation" in line]
    right = {look["step"]: round(100 * (1 - look["error"])) for look in looks}
    step, best = next((step, count) for step, count in right.items() if count > right[2])
    stopped = train_tiny(tmp_path / "stopped", *changes, f"training.stop_at_accuracy={best / 100}")
    last = json.loads((stopped / "metrics.jsonl").read_text().splitlines()[-1])
    assert (last["kind"], last["step"]) == ("validation", step)
    assert (stopped / "checkpoints" / f"step-{step:08d}").is_dir()
    before = weights(stopped)
    train_tiny(tmp_path / "stopped", *changes, f"training.stop_at_accuracy={best / 100}", resume=True)
    assert same_weights(before, weights(stopped))  # it has reached its end and does not go on
