"""``torchcaps train`` and ``torchcaps recipes`` as a user meets them; every example of their help is run."""

from __future__ import annotations

import errno
import json
import os
import re

import pytest
import torch

from published_files import write_picture_folder
from torchcaps.cli.app import main
from torchcaps.cli.recipes import copy_command, list_command, recipes_app, show_command
from torchcaps.cli.train import train
from torchcaps.train import list_recipes, load_recipe
from training_runs import TINY, random_source, records

QUICK = [*TINY, "--device", "cpu", "--quiet"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_train_says_where_the_run_lies_and_what_comes_next(tmp_path, capsys):
    assert main(["train", "demo", *QUICK, "--steps", "2", "--seed", "5"]) == 0
    captured = capsys.readouterr()
    assert "run folder: runs/demo-seed5" in captured.out
    assert "next: torchcaps evaluate runs/demo-seed5" in captured.out
    assert len(records(tmp_path / "runs" / "demo-seed5")) == 2
    assert (tmp_path / "runs" / "demo-seed5" / "final" / "model.safetensors").is_file()


def test_progress_goes_to_the_error_stream_as_lines(capsys):
    arguments = [argument for argument in QUICK if argument != "--quiet"]
    assert main(["train", "demo", *arguments, "--steps", "2"]) == 0
    assert re.search(r"demo: step 2 of 2: loss 0\.\d+  error \d+\.\d+ %  [\d,]+ images/s", capsys.readouterr().err)


def test_a_second_run_asks_for_resume_or_a_new_name(capsys):
    assert main(["train", "demo", *QUICK, "--steps", "1", "--name", "mine"]) == 0
    assert main(["train", "demo", *QUICK, "--steps", "1", "--name", "mine"]) == 1
    error = capsys.readouterr().err
    assert "runs/mine already holds a run. Add --resume" in error
    assert "--name" in error
    assert main(["train", "demo", *QUICK, "--steps", "1", "--name", "mine", "--resume"]) == 0


@pytest.mark.filterwarnings("default")
def test_skipped_files_are_counted_in_one_line(tmp_path, capsys):
    folder = write_picture_folder(tmp_path / "my set", {"cat": 15, "dog": 15}, size=28)
    (folder / "cat" / "broken.png").write_bytes(b"")
    (folder / "dog" / "notes.txt").write_text("not a picture")
    source = f"data.source=folder:{folder}"
    assert main(["train", "folder", source, *QUICK, "--steps", "1"]) == 0
    said = f"WARNING: 2 files or folders were skipped; torchcaps data info 'folder:{folder}' names them\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["demmo"], "no recipe is named 'demmo'; did you mean 'demo'?"),
        (["demo", "optimizer.lrr=1"], "did you mean optimizer.lr?"),
        (["demo", "model.name=capsnett"], "unknown model 'capsnett'"),
        (["demo", "--device", "cuda:77"], "is not on this machine"),
        (["demo", "training.steps=2", "training.epochs=2"], "both given, but a run has one length"),
        (["demo", "training.epochs=2", "--steps", "2"], "training.epochs=2 and training.steps=2 are both given"),
        (["demo", "--resume"], "holds no run to resume"),
        (["demo", "data.source=mnits"], "did you mean 'mnist'"),
        (["folder"], "there is no folder pictures; folder:PATH wants"),
        (["missing.toml"], "there is no recipe file missing.toml; torchcaps recipes copy NAME missing.toml"),
        (["demo", "data.augment=[{name = 'spin'}]"], "no augmentation is named 'spin'"),
    ],
)
def test_errors_are_one_paragraph(arguments, message, capsys):
    assert main(["train", *arguments, "--quiet"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("Error: ")
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("arguments", [["train"], ["train", "demo", "--steps", "0"], ["recipes", "show"]])
def test_wrong_usage_exits_with_two(arguments):
    assert main(arguments) == 2


def test_name_and_run_dir_exclude_each_other(tmp_path):
    assert main(["train", "demo", "--name", "a", "--run-dir", "b"]) == 2


def test_a_damaged_checkpoint_is_said(tmp_path, capsys):
    arguments = ["train", "demo", *QUICK, "--steps", "1", "--run-dir", "run"]
    assert main(arguments) == 0
    file = tmp_path / "run" / "checkpoints" / "last" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    assert main([*arguments, "--resume"]) == 1
    assert "is damaged or not complete" in capsys.readouterr().err
    file.with_name("training.json").write_text("[1, 2]")
    assert main([*arguments, "--resume"]) == 1
    assert "training.json is damaged: it must hold a table, got [1, 2]" in " ".join(capsys.readouterr().err.split())


def test_recipes_list_show_copy(tmp_path, capsys):
    assert main(["recipes", "list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in list_recipes())
    assert main(["recipes", "show", "mnist-paper", "--resolved", "optimizer.lr=0.5"]) == 0
    (tmp_path / "shown.toml").write_text(capsys.readouterr().out)
    assert load_recipe(tmp_path / "shown.toml") == load_recipe("mnist-paper", ["optimizer.lr=0.5"])
    assert main(["recipes", "copy", "mnist-paper", "mine.toml"]) == 0
    assert load_recipe("mine.toml").model == load_recipe("mnist-paper").model
    assert main(["recipes", "copy", "mnist-paper", "mine.toml"]) == 1
    assert "exists already" in capsys.readouterr().err
    assert main(["recipes", "copy", "mnist-paper", "mine.txt"]) == 1


def test_a_copy_is_whole_or_not_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "replace", full_disk)
    assert main(["recipes", "copy", "demo", "mine.toml"]) == 1
    assert capsys.readouterr().err == "Error: mine.toml cannot be written: the disk is full; choose another place\n"
    assert list(tmp_path.iterdir()) == []


def full_disk(*places: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_what_comes_next_can_be_pasted(capsys):
    assert main(["train", "demo", *QUICK, "--steps", "1", "--run-dir", "my run"]) == 0
    assert "next: torchcaps evaluate 'my run'\n" in capsys.readouterr().out
    assert main(["recipes", "copy", "demo", "my recipe.toml"]) == 0
    assert "next: torchcaps train 'my recipe.toml'\n" in capsys.readouterr().out


def examples() -> list[str]:
    texts = [train.__doc__, recipes_app.info.epilog or ""]
    texts += [command.epilog or "" for command in recipes_app.registered_commands]
    found = [line for text in texts for line in re.findall(r"torchcaps (?:train|recipes) [^\n&]+", text or "")]
    assert {list_command, show_command, copy_command} <= {c.callback for c in recipes_app.registered_commands}
    return sorted({line.strip() for line in found if "RECIPE" not in line})


@pytest.mark.parametrize("example", examples())
def test_examples_of_the_help_run(example, tmp_path, monkeypatch, capsys):
    """As written, but with two steps of a tiny network, and random pictures where a data set is named."""
    words = example.split()[1:]
    if words[0] == "train":
        monkeypatch.setattr("torchcaps.train.feed.load", lambda *name, **options: random_source((1, 28, 28)))
        words = [word for word in words if not word.startswith("training.epochs=")]  # one length, the one below
        words += [*QUICK, "--steps", "1", "training.batch_size=4"]
        if "--resume" in words:
            assert main([word for word in words if word != "--resume"]) == 0
        if words[1].endswith(".toml"):
            assert main(["recipes", "copy", "mnist-official", words[1]]) == 0
    torch.manual_seed(0)
    assert main(words) == 0, capsys.readouterr().err


def test_the_environment_is_written_for_the_reader(tmp_path):
    assert main(["train", "demo", *QUICK, "--steps", "1", "--run-dir", "run"]) == 0
    assert json.loads((tmp_path / "run" / "environment.json").read_text())["data"]["is_sample"] is True
