"""What a run leaves behind, and what happens when the disk, the folder or a checkpoint is not as it should be."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
import torch

import torchcaps
from torchcaps.data import load
from torchcaps.errors import DataError, TorchcapsError
from torchcaps.train import fit, load_recipe
from torchcaps.train.checkpoint import CheckpointError, all_checkpoints, last_checkpoint
from torchcaps.train.guard import NonFiniteError
from torchcaps.train.log import JsonLines
from torchcaps.train.run_folder import RunFolderError
from training_runs import records, same_weights, tiny_recipe, train_tiny, weights


def test_the_folder_tells_everything(tmp_path):
    run = train_tiny(tmp_path / "run", seed=3)
    assert load_recipe(run / "recipe.toml") == tiny_recipe("seed=3")
    made_with = json.loads((run / "environment.json").read_text())
    assert made_with["torchcaps"] == torchcaps.__version__
    assert torch.__version__.startswith(made_with["libraries"]["torch"])  # less "+cu124", as it was published
    assert made_with["seed"] == 3
    assert made_with["device"].startswith("cpu")
    assert made_with["data"]["name"] == "mnist-sample"
    assert made_with["data"]["is_sample"] is True
    names = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert names == ["last", "step-00000001", "step-00000003", "step-00000006", "step-00000008"]
    complete = sorted(file.parent.name for file in run.glob("checkpoints/step-*/training.json"))
    assert complete == ["step-00000006", "step-00000008"]  # to resume from; the others are there to look at
    assert (run / "checkpoints" / "last").resolve().name == "step-00000008"
    assert sorted(path.name for path in (run / "final").iterdir()) == ["config.json", "model.safetensors"]
    assert all(path.stat().st_mode & 0o044 for path in run.rglob("*"))  # others may read results
    assert not list(run.rglob("*.pt")) + list(run.rglob("*.pkl")) + list(run.rglob(".saving-*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, which is Linux's")
def test_a_log_on_a_full_disk_is_named(tmp_path):
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    log = JsonLines(tmp_path / "metrics.jsonl")
    with pytest.raises(TorchcapsError, match=r"metrics\.jsonl cannot be written: No space left on device.*--resume"):
        log.write({"kind": "train", "step": 1})
    log.close()


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EIO, "broken")])
def test_a_disk_that_refuses_keeps_the_checkpoint_before(failure, tmp_path, monkeypatch):
    from torchcaps.train import checkpoint

    save_file, calls = checkpoint.save_file, []

    def full_on_the_second_save(tensors, file):
        calls.append(file)
        if len(calls) == 2:
            file.write_bytes(b"half")
            raise failure
        save_file(tensors, file)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", full_on_the_second_save)
        what = "the disk is full" if failure.errno == errno.ENOSPC else "it cannot be written"
        with pytest.raises(CheckpointError, match=f"step-00000006 was not saved: {what}.*--resume"):
            train_tiny(tmp_path / "run")
    assert last_checkpoint(tmp_path / "run" / "checkpoints").name == "step-00000003"
    assert not list((tmp_path / "run").rglob(".saving-*"))
    resumed = train_tiny(tmp_path / "run", resume=True)
    assert same_weights(weights(resumed), weights(train_tiny(tmp_path / "whole")))


@pytest.mark.parametrize("name", ["model.safetensors", "training.safetensors", "training.json", "config.json"])
def test_a_truncated_checkpoint_is_named_with_the_one_before(name, tmp_path):
    run = train_tiny(tmp_path)
    file = run / "checkpoints" / "last" / name
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(CheckpointError, match=r"step-00000008 is damaged .* go on from step-00000006"):
        train_tiny(tmp_path, resume=True)


def test_a_checkpoint_of_another_network_is_refused(tmp_path):
    run = train_tiny(tmp_path)
    file = run / "checkpoints" / "last" / "config.json"
    config = json.loads(file.read_text())
    file.write_text(json.dumps({**config, "architecture": "small-cnn"}))
    with pytest.raises(CheckpointError, match="another network: architecture is 'small-cnn' there and 'capsnet'"):
        train_tiny(tmp_path, resume=True)
    file.write_text(json.dumps({**config, "image_shape": [1, 32, 32]}))
    with pytest.raises(CheckpointError, match=r"another network: image_shape is \[1, 32, 32\] there and \[1, 28, 28\]"):
        train_tiny(tmp_path, resume=True)


def test_a_read_only_folder_is_said(tmp_path, monkeypatch):
    """Simulated, since the superuser may write everywhere."""
    from pathlib import Path

    def refuse(self, *arguments, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        with pytest.raises(RunFolderError, match="cannot be written: Read-only file system"):
            train_tiny(tmp_path / "run")
    run = train_tiny(tmp_path / "other", "training.steps=1")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(RunFolderError, match="make it writable to resume"):
        train_tiny(run, "training.steps=1", resume=True)


def test_a_file_where_the_folder_should_be_is_said(tmp_path):
    (tmp_path / "run").write_text("I was here first")
    with pytest.raises(RunFolderError, match="cannot be written"):
        train_tiny(tmp_path / "run")


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    from torchcaps.train.step import TrainingStep

    prepare = TrainingStep.prepare

    def poison(self, step, rate, progress):
        if step == 4:
            with torch.no_grad():
                self._parameters[0].mul_(float("nan"))
        prepare(self, step, rate, progress)

    monkeypatch.setattr(TrainingStep, "prepare", poison)
    with pytest.raises(NonFiniteError, match=r"became nan at or shortly before step 5.*step-00000003.*optimizer\.lr="):
        train_tiny(tmp_path)
    kept = torchcaps.from_pretrained(last_checkpoint(tmp_path / "checkpoints"))
    assert all(bool(torch.isfinite(p).all()) for p in kept.parameters())
    assert [record["step"] for record in records(tmp_path)] == [1, 2, 3, 4]


def test_weights_that_are_no_numbers_are_never_saved(tmp_path, monkeypatch):
    """The log is read too seldom to notice; the save looks for itself."""
    from torchcaps.train.step import TrainingStep

    prepare = TrainingStep.prepare

    def poison(self, step, rate, progress):
        prepare(self, step, rate, progress)
        if step == 5:
            self.optimizer.param_groups[0]["lr"].fill_(float("inf"))

    monkeypatch.setattr(TrainingStep, "prepare", poison)
    with pytest.raises(NonFiniteError, match="step-00000003"):
        train_tiny(tmp_path, "log.every=100")
    assert last_checkpoint(tmp_path / "checkpoints").name == "step-00000003"


def test_a_sample_does_not_stand_in_for_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr("torchcaps.train.feed.load", lambda *name, **options: load("mnist-sample"))
    with pytest.raises(DataError, match=r"mnist is not on this machine.*data\.source=mnist-sample"):
        fit("mnist-official", run_dir=tmp_path / "run", device="cpu", progress=False)
    assert not (tmp_path / "run").exists()


def test_a_batch_larger_than_the_data_is_said(tmp_path):
    with pytest.raises(DataError, match="batch_size must be 1 to 1000"):
        train_tiny(tmp_path, "training.batch_size=2000")


def test_a_device_that_is_not_here_is_said(tmp_path):
    from torchcaps.errors import TorchcapsError

    with pytest.raises(TorchcapsError, match="cuda:99 is not on this machine"):
        fit(tiny_recipe(), run_dir=tmp_path, device="cuda:99")
    with pytest.raises(TorchcapsError, match="no device is named 'gpu'"):
        fit(tiny_recipe(), run_dir=tmp_path, device="gpu")


def test_checkpoints_are_in_the_order_of_their_steps(tmp_path):
    for name in ("step-100000000", "step-99999999", "step-00000003", "step-of-mine"):
        (tmp_path / name).mkdir()
    assert [path.name for path in all_checkpoints(tmp_path)] == ["step-00000003", "step-99999999", "step-100000000"]
