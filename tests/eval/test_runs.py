"""Run folders as they are found: finished, going on, damaged, or only a model."""

from __future__ import annotations

import json
import shutil

import pytest
from safetensors.torch import load_file, save_file

import torchcaps
from torchcaps.errors import TorchcapsError
from torchcaps.eval import load_model, open_run


@pytest.fixture
def copied(small_run, tmp_path):
    return shutil.copytree(small_run, tmp_path / "run")


def test_a_finished_run(small_run):
    run = open_run(small_run)
    assert run.model_folder == str(small_run / "final")
    assert (run.name, run.seed, run.recipe["data"]["source"]) == ("small", 0, "mnist-sample")
    assert run.class_names == tuple("0123456789")
    assert [line["step"] for line in run.training_lines] == list(range(1, 41))  # the last line is cut off
    assert [line["step"] for line in run.validation_lines] == [20, 40]
    assert load_model(run).settings["primary_types"] == 4


def test_a_run_that_is_going_on_gives_its_newest_checkpoint(copied):
    shutil.rmtree(copied / "final")
    shutil.copytree(copied / "checkpoints" / "step-00000040", copied / "checkpoints" / "step-00000007")
    assert open_run(copied).model_folder.endswith("step-00000040")


@pytest.mark.parametrize("part", ["final", "checkpoints/step-00000040"])
def test_a_part_of_a_run_knows_the_run(small_run, part):
    run = open_run(small_run / part)
    assert run.model_folder == str(small_run / part)
    assert run.seed == 0
    assert len(run.training_lines) == 40


def test_shipped_weights_keep_the_name_they_were_asked_for_by(small_run):
    run = open_run("capsnet-mnist")
    assert run.title == run.name == "capsnet-mnist"
    assert run.recipe["name"] == "mnist-best"
    assert open_run(small_run).title == str(small_run / "final")


def test_a_model_alone(tmp_path):
    torchcaps.create_model("small-cnn", channels=4).save_pretrained(tmp_path / "model")
    run = open_run(tmp_path / "model")
    assert (run.recipe, run.seed, run.lines, run.class_names) == ({}, None, (), None)
    assert load_model(run).architecture == "small-cnn"


def test_loading_says_nothing_on_stdout(small_run, capsys):
    load_model(small_run)
    assert capsys.readouterr().out == ""


def test_a_step_that_was_repeated_counts_once(copied):
    with (copied / "metrics.jsonl").open("a") as file:
        file.write('\n{"kind": "train", "step": 40, "loss": 7.0}\n[1, 2]\n')
    lines = open_run(copied).training_lines
    assert len(lines) == 40
    assert lines[-1]["loss"] == 7.0


def test_missing_places(tmp_path):
    with pytest.raises(TorchcapsError, match="there is no folder"):
        open_run(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TorchcapsError, match=r"holds no model: expected config\.json"):
        open_run(tmp_path / "empty")
    (tmp_path / "file").write_text("")
    with pytest.raises(TorchcapsError, match="is a file"):
        open_run(tmp_path / "file")


def test_a_name_of_the_hub(small_run, monkeypatch):
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, allow_patterns: str(small_run / "final"))
    run = open_run("somebody/capsnet-digits")
    assert (run.model_folder, run.recipe) == ("somebody/capsnet-digits", {})
    assert load_model(run).settings["primary_types"] == 4

    def unreachable(*arguments: object, **options: object) -> str:
        raise ConnectionError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", unreachable)
    with pytest.raises(TorchcapsError, match=r"no folder somebody/capsnet-digits.*\(no network\)"):
        load_model(run)


def test_truncated_weights(copied):
    weights = copied / "final" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(TorchcapsError, match="damaged or cut short"):
        load_model(copied)
    weights.unlink()
    with pytest.raises(TorchcapsError, match=r"has no model\.safetensors"):
        load_model(copied)


def test_weights_of_another_architecture(copied):
    other = torchcaps.create_model("small-cnn", channels=4)
    save_file(other.state_dict(), copied / "final" / "model.safetensors")
    with pytest.raises(TorchcapsError, match="belong to another network"):
        load_model(copied)


def test_weights_that_lack_a_layer_are_not_loaded_in_silence(copied):
    weights = copied / "final" / "model.safetensors"
    kept = {name: tensor for name, tensor in load_file(weights).items() if not name.startswith("classes")}
    save_file(kept, weights)
    with pytest.raises(TorchcapsError, match="belong to another network"):
        load_model(copied)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "transformer"}, "'transformer', which is not known"),
        ({"preset": "mine"}, "does not describe a network"),
        ({"image_shape": [1, 4, 4]}, "does not describe a network"),
    ],
)
def test_other_configs(copied, change, message):
    config = copied / "final" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **change}))
    with pytest.raises(TorchcapsError, match=message):
        load_model(copied)


@pytest.mark.parametrize("file", ["recipe.toml", "environment.json", "final/config.json"])
def test_damaged_files(copied, file):
    (copied / file).write_text('{"half": ')
    with pytest.raises(TorchcapsError, match="is damaged"):
        load_model(open_run(copied))
