"""Which checkpoints stay: properties of the choice, and what it leaves in a run folder."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import torchcaps
from torchcaps import from_pretrained
from torchcaps.eval import open_run
from torchcaps.train import fit
from torchcaps.train.keeping import is_early, steps_to_keep
from training_runs import losses, tiny_recipe, train_tiny

STEPS = st.lists(st.integers(1, 10**7), min_size=1, max_size=60, unique=True).map(sorted)


@given(steps=STEPS, most=st.integers(1, 20))
def test_the_newest_two_and_the_first_stay_and_the_rest_is_chosen_once(steps, most):
    kept = steps_to_keep(steps, most)
    assert set(kept) <= set(steps)
    assert len(kept) == min(most, len(steps))
    assert kept[-2:] == steps[-2:][-most:]
    if most > 2:
        assert kept[0] == steps[0]
    assert steps_to_keep(kept, most) == kept
    assert steps_to_keep(reversed(steps), most) == kept


@given(st.integers(3, 20), st.integers(1, 10_000), st.integers(1, 400))
def test_neighbours_are_never_far_apart(most, period, count):
    kept: list[int] = []
    for step in range(period, period * (count + 1), period):
        before, kept = kept, steps_to_keep([*kept, step], most)
        assert set(kept) <= {*before, step}  # what went is not asked for again
    ratios = [later / earlier for earlier, later in itertools.pairwise(kept)]
    assert max(ratios, default=1) <= max(2, count ** (2 / (most - 2))) * (1 + 1e-9)


def test_a_dozen_of_fifty_epochs():
    kept: list[int] = []
    steps = [step for step in range(1, 50 * 468 + 1) if step % 468 == 0 or (step < 468 and is_early(step))]
    for step in steps:
        kept = steps_to_keep([*kept, step], 12)
    assert kept == [1, 4, 16, 64, 256, 468, 936, 2340, 3744, 8892, 22932, 23400]


def test_a_run_leaves_a_dozen_to_look_at_and_two_to_resume_from(tmp_path):
    run = train_tiny(tmp_path / "run", "training.steps=30", "log.checkpoint_every=1")
    folders = sorted((run / "checkpoints").glob("step-*"))
    steps = [int(folder.name[5:]) for folder in folders]
    assert (len(steps), steps[0], steps[-2:]) == (12, 1, [29, 30])
    assert [folder.name for folder in folders if (folder / "training.json").exists()] == [
        "step-00000029",
        "step-00000030",
    ]
    assert all((folder / "training.safetensors").exists() == (folder in folders[-2:]) for folder in folders)
    assert [int(folder.name[5:]) for folder in folders if from_pretrained(folder)] == steps
    pytest.importorskip("fastapi", reason="the studio is an extra")
    (facts,) = torchcaps.studio.Catalogue([str(run)]).facts()
    assert [checkpoint.step for checkpoint in facts.checkpoints] == steps


def test_what_a_kill_left_half_done_is_done_when_the_run_goes_on(tmp_path):
    run = train_tiny(tmp_path / "run")
    checkpoints = run / "checkpoints"
    expected = sorted(checkpoints.rglob("*"))
    (checkpoints / "step-00000003" / "training.safetensors").write_bytes(b"killed after training.json was removed")
    (checkpoints / "last").unlink()
    (checkpoints / "last").symlink_to("step-00000006")
    (checkpoints / ".saving-last").symlink_to("step-00000008")
    (checkpoints / ".saving-step-00000002.old").mkdir()
    (run / ".saving-final.old").mkdir()
    train_tiny(run, resume=True)
    assert sorted(checkpoints.rglob("*")) == expected
    assert (checkpoints / "last").resolve().name == "step-00000008"
    assert not list(run.rglob(".saving-*"))


def test_the_first_steps_are_kept_before_the_first_checkpoint_is_due(tmp_path):
    long = ("training.steps=20", "log.checkpoint_every=18")
    names = {path.name for path in (train_tiny(tmp_path / "run", *long) / "checkpoints").iterdir()}
    assert names == {"last", *(f"step-{step:08d}" for step in (1, 4, 16, 18, 20))}
    names = {path.name for path in (train_tiny(tmp_path / "few", *long, "log.keep=2") / "checkpoints").iterdir()}
    assert names == {"last", "step-00000018", "step-00000020"}  # as many as before, where a recipe says so


def test_a_run_that_is_cut_back_forgets_the_checkpoints_after(tmp_path):
    run = train_tiny(tmp_path / "run")
    newest = run / "checkpoints" / "step-00000008"
    (newest / "training.json").unlink()
    expected = losses(run)
    resumed = fit(tiny_recipe("training.steps=7"), run_dir=run, device="cpu", progress=False, resume=True)
    assert (resumed.steps, newest.exists()) == (7, False)
    assert losses(run) == expected[:7]
    assert open_run(run).model_folder == str(run / "final")


def test_checkpoints_to_look_at_are_not_written_over(tmp_path):
    from torchcaps.train.run_folder import RunFolderError

    run = train_tiny(tmp_path / "run", seconds=None)
    for file in run.glob("checkpoints/step-*/training.*"):
        file.unlink()
    for file in (run / "final").iterdir():
        file.unlink()
    (run / "final").rmdir()
    before = (run / "metrics.jsonl").read_bytes()
    with pytest.raises(RunFolderError, match=r"cannot go on from step 8; start a new run"):
        train_tiny(run, resume=True)
    assert (run / "metrics.jsonl").read_bytes() == before
    assert json.loads((run / "checkpoints" / "step-00000008" / "config.json").read_text())["architecture"] == "capsnet"
