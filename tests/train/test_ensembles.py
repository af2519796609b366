"""Rows for ensembles: measured once, when all members are finished, by added lengths; nothing is trained for them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import torchcaps
from torchcaps.data import load
from torchcaps.errors import TorchcapsError
from torchcaps.train.studies import (
    Cell,
    Study,
    StudyOptions,
    StudyResult,
    collect_records,
    get_study,
    joined,
    read_results,
    run_study,
    study_table,
)
from torchcaps.train.studies.facts import fact_number
from training_runs import TINY

PLAIN = Cell("plain", "demo", (), {"what": "one network"})
TOGETHER = joined("together", PLAIN, 3, {"what": "three networks"})
STUDY = Study(
    "tiny",
    "Tiny",
    (PLAIN, TOGETHER),
    ("what",),
    "test",
    changes=(*TINY, "training.steps=3", "data.validation=0.1"),
    seeds=2,
)


def options(out: Path, **more: object) -> StudyOptions:
    return StudyOptions(out, device="cpu", progress=False, **more)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Path, list[str]]:
    """The study with two seeds, then with three; and what the first call said."""
    root = tmp_path_factory.mktemp("ensembles")
    said: list[str] = []
    assert not run_study(STUDY, options(root), said.append)  # a row that cannot be made does not stop the others
    assert not (root / "together").exists()
    assert run_study(STUDY, options(root, seeds=3), lambda text: None)
    return root, said


def result_of(root: Path, cell: str = "together") -> StudyResult:
    return read_results(root, [cell])[cell][0]


def test_missing_members_are_named(runs):
    _, said = runs
    assert said[-1] == "together: skipped, it needs 3 finished runs; plain/seed2 is not begun"


def test_an_ensemble_counts_what_its_members_say_together(runs):
    root, _ = runs
    found, members = result_of(root), read_results(root, ["plain"])["plain"]
    source = load("mnist-sample")
    total = torch.zeros(500, 10)
    with torch.no_grad():
        for seed in range(3):
            model = torchcaps.from_pretrained(root / "plain" / f"seed{seed}" / "final").eval()
            total += model(source.test.images / 255).capsules.norm(dim=-1)
    assert found.wrong == tuple((total.argmax(dim=1) != source.test.labels).nonzero()[:, 0].tolist())
    assert found.errors == len(found.wrong)
    assert (found.examples, found.data, found.split, found.seed) == (500, "mnist-sample", "test", 0)
    assert (found.weights, found.precision) == ("ensemble of 3", "fp32")
    assert found.members == ("plain/seed0", "plain/seed1", "plain/seed2")
    assert found.parameters == 3 * members[0].parameters > 0
    assert found.steps == 9
    assert found.training_seconds == pytest.approx(sum(member.training_seconds for member in members))
    assert fact_number("images/s", [found], root) is None  # it has no log
    assert {path.name for path in (root / "together" / "seed0").iterdir()} == {"result.json"}


def test_the_table_and_the_records_have_a_row(runs, tmp_path):
    root, _ = runs
    found = result_of(root)
    rows = {row[0]: row[1:] for row in study_table(STUDY, root).rows}
    assert rows["one network"][2] == "3"
    assert rows["three networks"][0] == f"{found.error.percent:.3f}"
    assert rows["three networks"][2] == "1"
    assert rows["three networks"][-2:] == ("–", f"{found.errors} of 500")
    together = set.intersection(*(set(member.wrong) for member in read_results(root, ["plain"])["plain"]))
    assert rows["one network"][-2] == str(len(together))
    assert collect_records(STUDY, root, tmp_path) == 4
    assert result_of(tmp_path) == found
    assert study_table(STUDY, tmp_path).rows == study_table(STUDY, root).rows
    said: list[str] = []
    (tmp_path / "together" / "seed0" / "result.json").unlink()
    assert not run_study(STUDY, options(tmp_path, cells=("together",)), said.append)  # records hold no weights
    assert "plain/seed0 has no weights" in said[0]


def test_an_ensemble_alone_is_measured_once_and_again_when_asked(runs, monkeypatch):
    root, _ = runs
    alone = options(root, cells=("together",))
    file = root / "together" / "seed0" / "result.json"
    before = file.read_text()
    file.unlink()
    monkeypatch.setattr("torchcaps.train.studies.measure.SMALL_BATCH", 10)
    assert not run_study(STUDY, replace(alone, budget=1e-9), lambda text: None)
    assert not file.exists()
    said: list[str] = []
    assert run_study(STUDY, replace(alone, seeds=1), said.append)  # --seeds is about runs that are trained
    assert said == [f"together: {result_of(root).error} on mnist-sample, test"]
    assert json.loads(file.read_text()) == json.loads(before)
    with pytest.raises(TorchcapsError, match=r"seed0 holds a run with other settings \(training\.steps changed\)"):
        run_study(STUDY, replace(alone, changes=("training.steps=4",)), lambda text: None)
    file.write_text(before.replace('"ensemble of 3"', '"old"'))
    assert run_study(STUDY, alone, lambda text: None)
    assert result_of(root).weights == "old"
    assert run_study(STUDY, replace(alone, measure_again=True), lambda text: None)
    assert result_of(root).weights == "ensemble of 3"


def test_a_failed_member_is_named(tmp_path):
    for seed, failure in enumerate(("", "the loss became nan")):
        result = StudyResult("plain", seed, "test", "mnist", 0, 1, "last", "fp32", 1, 1, 1.0, 1.0, failure=failure)
        result.write(tmp_path / "plain" / f"seed{seed}")
    (tmp_path / "plain" / "seed0" / "final").mkdir()
    (tmp_path / "plain" / "seed2").mkdir()
    said: list[str] = []
    assert not run_study(STUDY, options(tmp_path, cells=("together",)), said.append)
    assert said[0].endswith("3 finished runs; plain/seed1 failed, plain/seed2 is not finished")


def test_a_place_that_cannot_be_written_is_said_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(TorchcapsError, match=r"cannot be written: .*; choose another place with --out"):
        run_study(STUDY, options(tmp_path / "file" / "runs"), lambda text: None)


def test_choices_on_held_out_digits_never_read_the_test_split(runs, tmp_path, monkeypatch):
    root, _ = runs

    def without_test(*arguments: object) -> object:
        source = load("mnist-sample")
        object.__setattr__(source, "test", object())  # any use of it fails
        return source

    (tmp_path / "plain").symlink_to(root / "plain")
    monkeypatch.setattr("torchcaps.train.studies.run.load_source", without_test)
    chosen = options(tmp_path, cells=("together",))
    assert run_study(replace(STUDY, split="validation"), chosen, lambda text: None)
    assert (result_of(tmp_path).split, result_of(tmp_path).examples) == ("validation", 100)
    with pytest.raises((TypeError, AttributeError)):
        run_study(STUDY, replace(chosen, measure_again=True), lambda text: None)


def test_definitions_are_checked():
    with pytest.raises(TorchcapsError, match="together joins runs of 'plain', which must be a cell before it"):
        replace(STUDY, cells=(TOGETHER, PLAIN))
    with pytest.raises(TorchcapsError, match="at least 2 seeds of a cell, got 1"):
        joined("alone", PLAIN, 1, {})


def test_seven_networks_on_cifar10_as_in_the_paper():
    more = get_study("more")
    single, together = more.choose(["cifar10*"])
    assert more.members(together) == [(single, seed) for seed in range(7)]
    assert more.recipe(together, 0) == more.recipe(single, 0)
    assert together.words["published"] == "10.6"
