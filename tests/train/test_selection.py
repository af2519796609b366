"""Every checkpoint on the test split: counted as by hand, the last weights are the error, and nothing is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import torchcaps
from torchcaps.data import load
from torchcaps.errors import TorchcapsError
from torchcaps.train.checkpoint import all_checkpoints
from torchcaps.train.studies import StudyOptions, get_study, run_study, study_table
from torchcaps.train.studies.along import errors_by_step, write_along
from torchcaps.train.studies.collect import write_study
from torchcaps.train.studies.results import StudyResult, read_results
from training_runs import TINY

CHANGES = (*TINY, "data.source=mnist-sample", "training.steps=8", "log.checkpoint_every=2", "optimizer.lr=0.02")


def options(root, **more):
    return StudyOptions(root, seeds=1, device="cpu", progress=False, changes=CHANGES, **more)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root = tmp_path_factory.mktemp("selection")
    study = get_study("selection")
    assert run_study(study, options(root, keep_checkpoints=True), lambda text: None)
    (result,) = read_results(root, ["mnist-official"])["mnist-official"]
    return root, study, result


def wrong(folder):
    digits = load("mnist-sample").test
    with torch.no_grad():
        scores = torchcaps.from_pretrained(folder).eval()(digits.images / 255).scores
    return int((scores.argmax(dim=1) != digits.labels).sum())


def test_every_checkpoint_is_counted_and_the_last_weights_are_the_error(run):
    root, _, result = run
    folder = root / "mnist-official" / "seed0"
    kept = all_checkpoints(folder / "checkpoints")
    assert [path.name for path in kept] == [f"step-{step:08d}" for step in (1, 2, 4, 6, 8)]
    counts = [wrong(path) for path in kept[1:]]  # the first step is there to look at
    assert [round(5 * percent) for _, percent in errors_by_step(result)] == counts  # of 500 digits
    assert [step for step, _ in errors_by_step(result)] == [2, 4, 6, 8]
    assert result.errors == wrong(folder / "final") == counts[-1]
    assert result.extra("lowest checkpoint").count == min(counts)
    late = result.extra("mean of the last half")
    assert (late.count, late.total) == (sum(counts[2:]), 1000)  # steps 6 and 8: 4 is half of the way
    assert len(set(counts)) > 1  # else nothing would be tested


def test_the_table_shows_what_a_choice_would_claim_beside_what_counts(run, tmp_path):
    root, study, result = run
    table = study_table(study, root)
    row = dict(zip(table.head, table.rows[0], strict=True))
    assert row["error in %"] == f"{result.error.percent:.3f}"
    assert row["lowest checkpoint"] == f"{result.extra('lowest checkpoint').percent:.3f}"
    assert {"along.png", "table.md"} <= {file.name for file in write_study(study, root)}
    assert write_along(study, tmp_path) == []  # nothing was run there


def test_without_checkpoints_it_says_what_to_do(tmp_path):
    study, once = get_study("selection"), options(tmp_path)
    assert run_study(study, once, lambda text: None)
    with pytest.raises(TorchcapsError, match="train it with --keep-checkpoints"):
        run_study(study, replace(once, measure_again=True), lambda text: None)


def test_only_this_study_looks_at_checkpoints():
    for name in ("table1", "affine", "more"):
        assert get_study(name).protocol != "checkpoints"
    assert errors_by_step(StudyResult("a", 0, "test", "mnist", 1, 10, "last", "fp32", 1, 1, 1.0, 1.0)) == []
