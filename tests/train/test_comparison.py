"""The comparison: the same training for every row, equal effort for its settings, and a table from records alone."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path

import pytest
import torch

import torchcaps
from torchcaps.data import load
from torchcaps.errors import TorchcapsError
from torchcaps.train.recipe_files import save_recipe
from torchcaps.train.studies import (
    COMPARED_DATA,
    Settings,
    StudyResult,
    check_settings,
    comparison_study,
    finals_study,
    study_table,
    tuned_settings,
    tuning_study,
    write_study,
)
from torchcaps.train.studies.contestants import CONTESTANTS, TRIALS
from torchcaps.train.studies.facts import fact_text, settled_median
from torchcaps.train.studies.protocols import Task, split_turns_and_couplings
from torchcaps.train.studies.results import read_results
from torchcaps.train.tables import differing_keys
from training_runs import tiny_recipe

SHAPES = {"mnist": (1, 28, 28), "fashion": (1, 28, 28), "multimnist": (1, 36, 36), "coil20": (1, 32, 32)}
RECORDS = Path(__file__).parents[2] / "records"
FREE = ("model.", "optimizer.lr", "name", "description")


@pytest.mark.parametrize("data", COMPARED_DATA)
@pytest.mark.parametrize("make", [comparison_study, tuning_study], ids=["compare", "tune"])
def test_rows_differ_in_nothing_but_the_routing_and_the_rate(make, data):
    study = make(data)
    recipes = [study.recipe(cell, seed=0) for cell in study.cells]
    for recipe in recipes:
        different = [key for key in differing_keys(recipes[0], recipe) if not key.startswith(FREE)]
        assert different in ([], ["log.pictures_every"])  # which a study never does
    assert len({str(recipe) for recipe in recipes}) == len(recipes)
    assert study.split == ("test" if make is comparison_study else "validation")
    whole = study.split == "test" and data != "coil20"  # whose test views are of another kind than those held out
    assert recipes[0].data.validation == pytest.approx(0 if whole else 1 / 6)
    assert ("held out" in study.extras) == (study.split == "test" and data == "coil20")
    assert study.base is None or study.base in {cell.name for cell in study.cells}


def test_every_row_is_tuned_with_the_same_effort():
    names = {contestant.name for contestant in CONTESTANTS}
    assert names >= set(torchcaps.list_routings())
    for contestant in CONTESTANTS:
        assert len(set(contestant.grid)) == TRIALS, contestant.name
    routed = [contestant for contestant in CONTESTANTS if contestant.routes]
    assert len(comparison_study("fashion").cells) == len(routed) == 14
    assert len(comparison_study("mnist").cells) == len(CONTESTANTS) == 16


@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda contestant: contestant.name)
def test_every_setting_can_be_built_and_copied(contestant):
    """Copied, since the average of the weights is a copy of the network."""
    study = tuning_study("mnist")
    for place in range(TRIALS):
        (cell,) = study.choose([f"{contestant.name}.{place + 1}"])
        model = study.recipe(cell, seed=0).model
        with torch.device("meta"):
            copy.deepcopy(torchcaps.create_model(model.name, **model.settings))


def test_every_data_set_fits_the_network():
    for data, shape in SHAPES.items():
        recipe = comparison_study(data).recipe(comparison_study(data).cells[0], seed=0)
        with torch.device("meta"):
            torchcaps.create_model("capsnet", image_shape=shape, **recipe.model.settings)
    with pytest.raises(TorchcapsError, match="no comparison on 'cifar10'; choose from mnist"):
        comparison_study("cifar10")


def write_run(root: Path, cell: str, seed: int, errors: int, failure: str = "") -> Path:
    folder = root / cell / f"seed{seed}"
    StudyResult(
        cell, seed, "test", "mnist", errors, 1000, "averaged", "fp32", 1234, 100, 2.0, 1.5, failure=failure
    ).write(folder)
    return folder


def test_the_best_of_six_is_chosen_and_the_first_of_equals(tmp_path):
    for place, errors in enumerate((30, 20, 20, 40, 50, 60)):
        write_run(tmp_path, f"em.{place + 1}", 0, errors)
        write_run(tmp_path, f"vb.{place + 1}", 0, errors, failure="the loss became nan" if place in (1, 2) else "")
        write_run(tmp_path, f"leaky.{place + 1}", 0, errors, failure="the loss became nan")
        if place < 5:
            write_run(tmp_path, f"dynamic.{place + 1}", 0, errors)  # the sixth is missing
        write_run(tmp_path, f"average.{place + 1}", 0, errors)
    write_run(tmp_path, "average.1", 1, 0)  # a seed that the others lack
    write_run(tmp_path, "average.1", 3, 0)
    chosen = tuned_settings("mnist", tmp_path, tmp_path / "none")
    grids = {contestant.name: contestant.grid for contestant in CONTESTANTS}
    assert chosen.changes == {"average": grids["average"][1], "em": grids["em"][1], "vb": grids["vb"][0]}
    assert chosen.trials["vb"] == {
        "vb.1": 3.0,
        "vb.2": None,
        "vb.3": None,
        "vb.4": 4.0,
        "vb.5": 5.0,
        "vb.6": 6.0,
    }
    file = chosen.write(tmp_path)
    assert Settings.read(file) == chosen
    with pytest.raises(TorchcapsError, match="choose another place with --records"):
        chosen.write(file / "below a file", "--records")
    again = Settings("mnist", {"leaky": ("optimizer.lr=0.1",), "vb": ("optimizer.lr=0.2",)}).added_to(file)
    tuned_here = {"vb": ("optimizer.lr=0.2",), "leaky": ("optimizer.lr=0.1",)}
    assert again.changes == {"average": grids["average"][1], "em": grids["em"][1], **tuned_here}
    with pytest.raises(TorchcapsError, match="was tuned on mnist, not on fashion"):
        Settings("fashion", {}).added_to(file)
    words = {cell.name: cell.words["settings"] for cell in comparison_study("coil20", chosen).cells}
    assert words["em"] == "inverse_temperature 10.0, rate 0.002"
    assert words["dynamic"].endswith("(default, not tuned)")
    for damage in ('{"data": "mnist", "changes": {"a": 3}, "trials": {}}', "[" * 100_000):
        (tmp_path / "settings.json").write_text(damage)
        with pytest.raises(TorchcapsError, match="holds no settings of a comparison"):
            Settings.read(tmp_path / "settings.json")
    (tmp_path / "settings.json").write_text("{}")
    with pytest.raises(TorchcapsError, match="holds no settings of a comparison"):
        Settings.read(tmp_path / "settings.json")


def test_a_second_round_has_the_last_word_on_the_best_three(tmp_path):
    first, finals = tmp_path / "tune", tmp_path / "finals"
    with pytest.raises(TorchcapsError, match="no row has been tuned to the end"):
        finals_study("mnist", first)
    finals.mkdir()
    assert not tuned_settings("mnist", first, finals).changes  # a first round that has just begun anew
    for place, errors in enumerate((30, 20, 20, 40, 10, 60)):
        write_run(first, f"em.{place + 1}", 0, errors)
        write_run(first, f"vb.{place + 1}", 0, errors, failure="the loss became nan" if place != 3 else "")
        write_run(first, f"leaky.{place + 1}", 0, errors)
    study = finals_study("mnist", first)
    places = {"em": [2, 3, 5], "leaky": [2, 3, 5], "vb": [4]}
    assert {cell.name for cell in study.cells} == {f"{row}.{place}" for row in places for place in places[row]}
    assert (study.split, study.seeds) == ("validation", 3)
    assert [study.recipe(study.cells[0], seed).data.fold for seed in range(3)] == [0, 1, 2]
    grids = {contestant.name: contestant.grid for contestant in CONTESTANTS}
    assert tuned_settings("mnist", first, finals).changes["em"] == grids["em"][4]
    for place, errors in ((2, 9), (3, 5), (5, 7)):
        write_run(finals, f"em.{place}", 0, errors + 4)
        write_run(finals, f"em.{place}", 1, errors - 4)
        if place < 5:
            write_run(finals, f"leaky.{place}", 0, errors)  # not run to the end
    chosen = tuned_settings("mnist", first, finals)
    assert chosen.changes == {"em": grids["em"][2], "leaky": grids["leaky"][4], "vb": grids["vb"][3]}
    assert chosen.trials["em"] == {"em.2": 0.9, "em.3": 0.5, "em.5": 0.7}
    assert len(chosen.trials["leaky"]) == 6
    assert "The last word for 1 of 3 rows has a second round" in comparison_study("mnist", chosen).note
    assert "second round" not in comparison_study("mnist", tuned_settings("mnist", first, tmp_path / "none")).note


def test_runs_of_other_settings_are_not_put_under_these(tmp_path):
    study = comparison_study("mnist")
    (em,) = study.choose(["em"])
    folder = write_run(tmp_path, "em", 0, 10)
    (folder / "recipe.toml").write_text(save_recipe(study.recipe(em, seed=0)))
    check_settings(study, tmp_path, ["training.steps=10"])
    with pytest.raises(TorchcapsError, match=r"optimizer\.lr is what is compared"):
        check_settings(study, tmp_path, ["optimizer.lr = 0.1"])
    for override in ("optimizer={lr=0.5}", "model={routing={name='em'}}", "model={conv_channels=8}", "optimizer=5"):
        with pytest.raises(TorchcapsError, match="is what is compared"):  # a section replaces all that rows have in it
            check_settings(study, tmp_path, [override])
    tuned = Settings("mnist", {"em": CONTESTANTS[0].grid[1]})
    with pytest.raises(TorchcapsError, match=r"em/seed0 was trained with model\.routing = \{'name': 'em'"):
        check_settings(comparison_study("mnist", tuned), tmp_path)


def test_speed_is_a_median_after_the_first_fifth(tmp_path):
    lines = [{"kind": "train", "step": 10 * place, "images_per_second": 100 * place} for place in range(1, 11)]
    file = tmp_path / "metrics.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [*lines, {"kind": "note", "step": 0}]))
    assert settled_median(file, "images_per_second") == 650  # of 300 … 1000
    assert settled_median(file, "peak_memory_bytes") is None


def test_speed_is_that_of_the_fastest_seed_and_memory_of_the_leanest(tmp_path):
    for seed, speed, peak in ((0, 100, 2**20), (1, 300, 3 * 2**20)):
        folder = write_run(tmp_path, "em", seed, 10)
        line = {"kind": "train", "step": 1, "images_per_second": speed, "peak_memory_bytes": peak}
        (folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    results = read_results(tmp_path, ["em"])["em"]
    assert fact_text("images/s", results, tmp_path) == "300"
    assert fact_text("peak memory in MiB", results, tmp_path) == "1"


@pytest.mark.parametrize("folder", sorted(RECORDS.glob("compare-*")), ids=lambda folder: folder.name)
def test_the_tables_among_the_records_are_what_the_records_give(folder, tmp_path):
    data = folder.name.removeprefix("compare-")
    settings = Settings.read(folder / "settings.json")
    check_settings(comparison_study(data, settings), folder)
    places = [(comparison_study(data, settings), folder)]
    if (folder / "tune").exists():
        places.append((tuning_study(data), folder / "tune"))
        assert tuned_settings(data, folder / "tune", folder / "finals") == settings
    if (folder / "finals").exists():
        places.append((finals_study(data, folder / "tune"), folder / "finals"))
    for study, place in places:
        for file in study_table(study, place).write(tmp_path):
            assert file.read_text() == (place / file.name).read_text(), file


def test_a_study_that_has_not_begun_has_a_page_of_dashes(tmp_path):
    study = comparison_study("mnist")
    files = {file.name for file in write_study(study, tmp_path)}
    assert {"table.csv", "couplings.csv", "comparison.html"} <= files
    table = study_table(study, tmp_path)
    assert {len(row) for row in table.rows} == {len(table.head)}
    assert all(set(row[5:]) == {"–"} for row in table.rows)


def test_a_run_that_was_not_turned_leaves_a_gap_in_the_figure(tmp_path):
    study = comparison_study("coil20")
    write_run(tmp_path, "em", 0, 10)
    folder = write_run(tmp_path, "vb", 0, 20)
    result = StudyResult.read(folder / "result.json")
    dataclasses.replace(result, extras={"turned ±15°": (5, 10)}).write(folder)
    files = {file.name for file in write_study(study, tmp_path)}
    assert {"errors.png", "comparison.html"} <= files


def test_pairs_are_turned_as_they_are_seen():
    torch.manual_seed(0)
    recipe = tiny_recipe("data.task=multimnist", "data.augment=[]")
    model = torchcaps.create_model("capsnet", image_shape=(1, 36, 36), conv_channels=4, primary_types=1).eval()
    task = Task(model, recipe, load("mnist-sample"), "test", torch.device("cpu"), limit=12)
    measured = split_turns_and_couplings(task)
    assert measured.error == measured.extras["rotation 0"]
    assert measured.wrong is None  # a pair stands in no split
    assert {share.total for name, share in measured.extras.items() if name.startswith("rotation")} == {12}
    turned = [measured.extras[f"turned ±{degrees}°"] for degrees in (15, 30, 45)]
    assert {share.total for share in turned} == {24}
    both = measured.extras["rotation -30"].count + measured.extras["rotation 30"].count
    assert turned[1].count == both
    assert measured.couplings["classes"].upper == 10
