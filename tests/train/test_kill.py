"""Kill −9 at random moments, SIGTERM, and two processes: real processes, as a user starts them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pytest
import torch
from tests.soak.kills import EIGHT_STEPS, Whole, events_of, kill_at_events, kill_at_random, processes

from torchcaps.train import fit, load_recipe
from torchcaps.train.interrupt import OutOfTimeError
from training_runs import TINY, losses, train_tiny, weights

pytest.importorskip("resource", reason="Windows has no kill -9 and forks no process")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "torchcaps", "train", "demo", "--device", "cpu", "-q", *TINY, *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def wait_for_steps(folder: Path, alive: Callable[[], bool]) -> None:
    """Return when the log has grown: the run is in its loop."""
    file = folder / "metrics.jsonl"
    size = file.stat().st_size if file.exists() else 0
    deadline = time.monotonic() + 60
    while alive() and time.monotonic() < deadline:
        if file.exists() and file.stat().st_size > size:
            return
        time.sleep(0.005)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return Whole(tmp_path_factory.mktemp("whole") / "run", EIGHT_STEPS)


def test_killed_at_random_moments_and_resumed_equals_uninterrupted(whole, tmp_path):
    """``python -m tests.soak.kills`` does so a hundred times."""
    assert kill_at_random(whole, tmp_path / "killed", random.Random(0), most=3) >= 1  # a machine may stand still


def test_killed_at_file_events_and_resumed_equals_uninterrupted(whole, tmp_path):
    """At some of more than two hundred; ``python -m tests.soak.kills`` takes them all."""
    events = events_of(tmp_path / "counted", EIGHT_STEPS)
    assert len(events) > 150
    link = next(number for number in range(len(events), 0, -1) if "os.symlink" in events[number - 1])
    some = range(link % 60, link + 1, 60)  # the last one leaves a link to the checkpoint before
    assert list(kill_at_events(whole, tmp_path, None, some)) == list(some)


def seconds_to_save_and_exit(folder: Path, number: signal.Signals) -> float:
    endless = command("training.steps=100000", "log.checkpoint_every=100000", "--run-dir", str(folder))
    process = subprocess.Popen(endless, env=environment(), stderr=subprocess.PIPE, text=True)
    wait_for_steps(folder, lambda: process.poll() is None)
    sent = time.monotonic()
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    seconds = time.monotonic() - sent
    assert process.returncode == 130
    assert "saved. Go on with the same command and --resume" in messages
    assert "Traceback" not in messages
    assert (folder / "checkpoints" / "last" / "model.safetensors").is_file()
    return seconds


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_exits_with_130_in_under_five_seconds(number, tmp_path):
    # the best of three: other work on the machine only adds
    assert any(seconds_to_save_and_exit(tmp_path / str(n), number) < 5 for n in range(3))


def test_two_processes_have_the_losses_of_one(tmp_path):
    changes = ["training.steps=20", "data.validation=0.1"]
    train_tiny(tmp_path / "one", *changes)
    program = command(*changes, "--run-dir", str(tmp_path / "two"))
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *program[1:]]
    two = subprocess.run(torchrun, env=environment(), capture_output=True, text=True, timeout=240)
    assert two.returncode == 0, two.stderr
    assert two.stdout.count("run folder:") == 1
    assert len(losses(tmp_path / "two")) == 20
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-5)
    difference = max(
        float((mine - theirs).abs().max())
        for mine, theirs in zip(weights(tmp_path / "one").values(), weights(tmp_path / "two").values(), strict=True)
    )
    assert difference < 1e-4
    # one process goes on where two stood
    train_tiny(tmp_path / "two", "training.steps=22", "data.validation=0.1", resume=True)
    assert len(losses(tmp_path / "two")) == 22


def piece(folder: Path, changes: list[str], rank: int, port: int, threads: SimpleQueue[str]) -> None:
    """One of two processes, as torchrun would start them; tells which threads are left when their group has ended."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.environ |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    torch.set_num_threads(1)
    resume = (folder / "recipe.toml").exists()
    end_of_group = torch.distributed.destroy_process_group

    def end_and_look() -> None:
        end_of_group()
        deadline = time.monotonic() + 5
        while "gloo" in (names := thread_names()) and time.monotonic() < deadline:
            time.sleep(0.05)  # the system lists a thread a moment longer than it lives
        threads.put(names)

    torch.distributed.destroy_process_group = end_and_look
    with suppress(OutOfTimeError):
        seconds = None if resume else 0
        fit(load_recipe("demo", changes), run_dir=folder, device="cpu", progress=False, resume=resume, seconds=seconds)


def thread_names() -> str:
    names = []
    for thread in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has just ended
            names.append(thread.read_text().strip())
    return " ".join(names)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_two_processes_count_once_what_they_had_counted_before_a_stop(tmp_path):
    """The record after a stop covers steps of both pieces, and examples of both processes, whoever goes on."""
    changes = [*TINY, "training.steps=4", "log.every=4", "data.validation=0.1", "optimizer.lr=0.05"]
    train_tiny(tmp_path / "one", *changes)
    for number in range(2):
        if number == 1:
            shutil.copytree(tmp_path / "two", tmp_path / "one after two")
        port, threads = free_port(), processes().SimpleQueue()
        both = [
            processes().Process(target=piece, args=(tmp_path / "two", changes, rank, port, threads))
            for rank in range(2)
        ]
        for process in both:
            process.start()
        for process in both:
            process.join(240)
            assert process.exitcode == 0
            assert "gloo" not in threads.get()  # a thread that outlives its group can abort the process, or hang it
    fit(load_recipe("demo", changes), run_dir=tmp_path / "one after two", device="cpu", progress=False, resume=True)
    for run in ("two", "one after two"):
        assert len(losses(tmp_path / run)) == 1
        assert losses(tmp_path / run) == pytest.approx(losses(tmp_path / "one"), abs=1e-5)
