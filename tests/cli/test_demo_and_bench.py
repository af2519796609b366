import errno
import os
import re
import runpy
import sys
from pathlib import Path

import pytest
import torch
from benchmarks.capsnet_cpu import inference, make_models, training_step

from torchcaps.cli.app import main


def examples_of(command: str, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    assert main([command, "--help"]) == 0
    printed = capsys.readouterr().out.split("Examples")[1]  # behind the usage line
    return [example.split() for example in re.findall(rf"torchcaps ({command}[^│\n]*)", printed)]


def test_every_example_of_demo_runs_and_leaves_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    examples = examples_of("demo", capsys)
    assert len(examples) == 2
    for example in examples:
        assert main([*example, "--steps", "2"]) == 0  # the last --steps counts
        printed = capsys.readouterr().out
        assert re.search(r"\d+ of 500 digits that it was not trained on are right", " ".join(printed.split()))
        assert "8,215,728" in printed
        assert "iteration 3" in printed
    for folder in ("out/demo/run-1", "demo/run-1"):
        assert (tmp_path / folder / "report.html").read_text().startswith("<!doctype html>")
        assert (tmp_path / folder / "routing.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert main(["demo", "--steps", "1", "--out", "demo"]) == 0
    assert f"the program is in {Path(sys.executable).parent}" in capsys.readouterr().out
    assert (tmp_path / "demo" / "run-2" / "report.html").is_file()


def test_a_place_that_cannot_be_written_is_said_before_the_work(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["demo", "--out", str(tmp_path / "file" / "demo")]) == 1
    captured = capsys.readouterr()
    assert "choose another place with --out" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("place", ["run_folder.RunFolder.write_recipe", "checkpoint.save_file"])
def test_a_disk_that_fills_up_is_said_with_the_option_of_demo(place, tmp_path, monkeypatch, capsys):
    def refuse(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"torchcaps.train.{place}", refuse)
    assert main(["demo", "--steps", "1", "--out", str(tmp_path / "demo")]) == 1
    error = " ".join(capsys.readouterr().err.split())
    assert error.endswith("run-1 cannot be written: the disk is full; choose another place with --out")


def test_every_example_of_bench_runs(monkeypatch, capsys):
    calls = []
    monkeypatch.setattr(runpy, "run_module", lambda name, run_name: calls.append((name, sys.argv[1:])))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["torchcaps"])
    for example in examples_of("bench", capsys):
        assert main(example) == 0
    assert "capsnet_cpu" in capsys.readouterr().out
    assert calls == [
        ("benchmarks.capsnet_cpu", []),
        ("benchmarks.data", []),
        ("benchmarks.capsnet_cpu", ["--seconds", "2"]),
    ]


def test_the_networks_that_the_benchmark_times_run_and_the_textbook_one_agrees_with_ours():
    models = make_models()
    images, labels = torch.rand(2, 1, 28, 28), torch.tensor([3, 8])
    models["eager"].classes.bias.data.zero_()  # the textbook has none
    for name, model in models.items():
        model.load_state_dict({k: v for k, v in models["eager"].state_dict().items() if k in model.state_dict()})
        inference(name, model, images)()
    torch.testing.assert_close(models["textbook"](images).capsules, models["eager"](images).capsules)
    for name, model in models.items():
        training_step(name, model, images, labels)()


def test_unknown_benchmark(capsys):
    assert main(["bench", "everything"]) == 1
    assert "choose from capsnet_cpu, data" in capsys.readouterr().err


def test_a_benchmark_of_a_gpu_says_so_where_there_is_none(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(runpy, "run_module", lambda name, run_name: pytest.fail("it was started"))
    assert main(["bench", "routing_gpu"]) == 1
    assert "routing_gpu measures a GPU, and PyTorch sees none here" in capsys.readouterr().err


def test_completion_is_offered(capsys):
    assert main(["--help"]) == 0
    assert "--install-completion" in capsys.readouterr().out
