"""A run that was stopped and resumed equals the one that was not, bit for bit."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal

import pytest

from torchcaps import from_pretrained
from torchcaps.eval import open_run
from torchcaps.train import Recipe, fit, load_recipe
from torchcaps.train.interrupt import OutOfTimeError, StopRequest, TrainingInterruptedError
from torchcaps.train.run_folder import RunFolderError
from torchcaps.train.step import TrainingStep
from training_runs import losses, random_source, records, same_weights, tiny_recipe, train_tiny, weights

OPTIONS = {"device": "cpu", "progress": False}
SMALL_CNN = ["model.name=small-cnn", "model.channels=4", "model.hidden=16", "data.drop_last=false"]
MATRIX = ["model.A=4", "model.B=2", "model.C=2", "model.D=2", "training.batch_size=10", "training.steps=8"]
CASES: dict[str, Recipe] = {
    "average": tiny_recipe("log.every=2"),
    "clipped": tiny_recipe("log.every=2", "optimizer.clip_norm=0.01", "optimizer.name=adamw", "training.ema=0"),
    "uphill": tiny_recipe("log.every=2", "optimizer.sharpness=0.1"),
    "pairs": tiny_recipe("data.task=multimnist", "data.augment=[]", "training.batch_size=4"),
    "dropout": load_recipe("demo", [*SMALL_CNN, "training.steps=8", "training.batch_size=30", "log.tensorboard=off"]),
    "growing margin": load_recipe(
        "matrix-capsules",
        [*MATRIX, "data.source=mnist-sample", "data.augment=[]", "log.every=1", "log.tensorboard=off"],
    ),
}


def send_at(step: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal arrives while a step is being prepared."""
    prepare = TrainingStep.prepare

    def prepare_and_send(self: TrainingStep, now: int, rate: float, progress: float) -> None:
        if now == step:
            os.kill(os.getpid(), number)
        prepare(self, now, rate, progress)

    monkeypatch.setattr(TrainingStep, "prepare", prepare_and_send)


@pytest.mark.parametrize("case", CASES)
def test_stopped_and_resumed_equals_uninterrupted(case, tmp_path, monkeypatch):
    recipe = CASES[case]
    whole = fit(recipe, run_dir=tmp_path / "whole", **OPTIONS).folder
    with monkeypatch.context() as patch:
        send_at(4, signal.SIGTERM, patch)
        with pytest.raises(TrainingInterruptedError, match="step 5 of 8"):
            fit(recipe, run_dir=tmp_path / "parts", **OPTIONS)
    assert not (tmp_path / "parts" / "final").exists()
    parts = fit(recipe, run_dir=tmp_path / "parts", resume=True, **OPTIONS).folder
    assert same_weights(weights(whole), weights(parts))
    assert losses(whole) == losses(parts)
    for name in ("model.safetensors", "training.safetensors"):
        file = f"checkpoints/last/{name}"
        assert (whole / file).read_bytes() == (parts / file).read_bytes()


def test_a_signal_is_not_swallowed_afterwards(tmp_path, monkeypatch):
    before = signal.getsignal(signal.SIGINT)
    send_at(2, signal.SIGINT, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fit(CASES["average"], run_dir=tmp_path, **OPTIONS)
    assert signal.getsignal(signal.SIGINT) is before
    assert (tmp_path / "checkpoints" / "last").resolve().name == "step-00000003"


def test_resuming_at_a_checkpoint_forgets_later_records(tmp_path):
    recipe = tiny_recipe()
    fit(recipe, run_dir=tmp_path, **OPTIONS)
    expected = losses(tmp_path)
    shutil.rmtree(tmp_path / "checkpoints" / "step-00000008")  # as if the run had been killed after step 7
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        for damage in (b"\xff\n", b"[1]\n", b'{"step": "7"}\n', b'{"step": null}\n', b'{"kind": "train", "st'):
            file.write(damage)
    fit(recipe, run_dir=tmp_path, resume=True, **OPTIONS)
    assert losses(tmp_path) == expected
    assert [record["step"] for record in records(tmp_path, "resumed")] == [6]


def test_a_finished_run_resumes_to_itself_and_can_be_lengthened(tmp_path):
    recipe = tiny_recipe("schedule.name=constant", "training.steps=4")
    fit(recipe, run_dir=tmp_path, **OPTIONS)
    before = weights(tmp_path)
    again = fit(recipe, run_dir=tmp_path, resume=True, **OPTIONS)
    assert again.steps == 4
    assert same_weights(before, weights(tmp_path))
    longer = fit(tiny_recipe("schedule.name=constant", "training.steps=6"), run_dir=tmp_path, resume=True, **OPTIONS)
    assert longer.steps == 6
    assert load_recipe(tmp_path / "recipe.toml").training.steps == 6
    assert not same_weights(before, weights(tmp_path))


def test_a_lengthened_run_that_is_stopped_does_not_pass_off_the_shorter_ones_weights(tmp_path):
    train_tiny(tmp_path, "training.steps=4")
    with pytest.raises(OutOfTimeError, match="stopped at step 5 of 8"):
        train_tiny(tmp_path, "training.steps=8", resume=True, seconds=0)
    assert open_run(tmp_path).model_folder == str(tmp_path / "checkpoints" / "step-00000005")


def test_a_finished_run_without_checkpoints_is_not_trained_anew_over_its_weights(tmp_path):
    train_tiny(tmp_path, "training.steps=2")
    shutil.rmtree(tmp_path / "checkpoints")
    before, log = weights(tmp_path), (tmp_path / "metrics.jsonl").read_text()
    with pytest.raises(RunFolderError, match="is finished and its checkpoints are gone"):
        train_tiny(tmp_path, "training.steps=3", resume=True)
    assert same_weights(before, weights(tmp_path))
    assert (tmp_path / "metrics.jsonl").read_text() == log


def test_a_checkpoint_is_a_model_of_its_own(tmp_path):
    fit(CASES["average"], run_dir=tmp_path, **OPTIONS)
    checkpoint = from_pretrained(tmp_path / "checkpoints" / "last")
    assert same_weights(checkpoint.state_dict(), weights(tmp_path, "checkpoints/last"))
    # final/ holds the average of the weights, the checkpoint the last ones
    assert not same_weights(weights(tmp_path), weights(tmp_path, "checkpoints/last"))


def test_another_recipe_is_refused(tmp_path):
    fit(tiny_recipe("training.steps=1"), run_dir=tmp_path, **OPTIONS)
    with pytest.raises(RunFolderError, match=r"optimizer\.lr, seed changed"):
        fit(tiny_recipe("optimizer.lr=0.5", "seed=3"), run_dir=tmp_path, resume=True, **OPTIONS)
    with pytest.raises(RunFolderError, match="already holds a run"):
        fit(tiny_recipe(), run_dir=tmp_path, **OPTIONS)
    with pytest.raises(RunFolderError, match="holds no run to resume"):
        fit(tiny_recipe(), run_dir=tmp_path / "nothing", resume=True, **OPTIONS)


def test_data_that_has_changed_is_refused(tmp_path):
    recipe = tiny_recipe("training.steps=2", "training.batch_size=4")
    source = random_source((1, 28, 28))
    fit(recipe, run_dir=tmp_path, source=source, **OPTIONS)
    renamed = dataclasses.replace(source, classes=("zero", *source.classes[1:]))
    with pytest.raises(RunFolderError, match=r"data has changed .* classes were 0, 1, .* and are zero, 1, .* --name"):
        fit(recipe, run_dir=tmp_path, source=renamed, resume=True, **OPTIONS)
    more = random_source((1, 28, 28), count=13)  # an epoch has as many steps as before
    with pytest.raises(RunFolderError, match="there were 12 training pictures and are 13"):
        fit(recipe, run_dir=tmp_path, source=more, resume=True, **OPTIONS)
    fit(recipe, run_dir=tmp_path, source=source, resume=True, **OPTIONS)


@pytest.mark.parametrize("noted", ["{}", "[]", '{"data": 3}', "not JSON"])
def test_a_run_that_noted_nothing_about_its_data(noted, tmp_path):
    recipe = tiny_recipe("training.steps=1", "training.batch_size=4")
    source, more = random_source((1, 28, 28)), random_source((1, 28, 28), count=40)
    fit(recipe, run_dir=tmp_path, source=source, **OPTIONS)
    (tmp_path / "environment.json").write_text(noted)
    with pytest.raises(RunFolderError, match=r"the data has changed .* an epoch has another length"):
        fit(recipe, run_dir=tmp_path, source=more, resume=True, **OPTIONS)
    fit(recipe, run_dir=tmp_path, source=source, resume=True, **OPTIONS)


def test_a_run_that_is_out_of_time_is_saved_and_goes_on(tmp_path):
    with pytest.raises(OutOfTimeError, match="stopped at step 1 of 8 and saved"):
        train_tiny(tmp_path / "run", seconds=0)
    assert (tmp_path / "run" / "checkpoints" / "step-00000001").is_dir()
    assert not (tmp_path / "run" / "final").exists()
    train_tiny(tmp_path / "run", resume=True, seconds=1000)
    assert same_weights(weights(tmp_path / "run"), weights(train_tiny(tmp_path / "whole")))


def test_a_signal_is_a_stronger_reason_than_the_time():
    stop = StopRequest(seconds=0)
    assert isinstance(stop.error("stopped"), OutOfTimeError)
    stop._receive(signal.SIGTERM, None)
    assert not isinstance(stop.error("stopped"), OutOfTimeError)
    assert not StopRequest(seconds=1000)
    assert not StopRequest()
