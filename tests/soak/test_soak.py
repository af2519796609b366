"""The soak finds what it is for, in the same inputs every time; a small one over all readers finds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="the soak needs fork and the system's limits")  # worker.py imports it

from tests.soak import worker
from tests.soak.harness import soak
from tests.soak.mutate import input_of
from tests.soak.target import Target

from torchcaps.errors import DataError

ROOT = Path(__file__).resolve().parents[2]


def refuse() -> None:
    raise DataError("no")


def hide_memory_error() -> None:
    try:
        bytearray(2**31)
    except MemoryError as error:
        raise DataError("damaged") from error


def spin() -> None:
    while True:
        pass


def bad_target(act) -> Target:
    """Every input that is longer than the seed lets the reader go wrong."""

    def read(data: bytes, scratch: Path) -> None:
        if len(data) > 3:
            act()

    return Target("bad", lambda folder: [b"abc"], read)


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (refuse, None),
        (hide_memory_error, "memory: MemoryError"),
        (lambda: bytearray(2**31), "memory: MemoryError"),
        (lambda: {}["a"], "exception: KeyError"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "crash: SIGSEGV"),
        (spin, "hang: test_soak.py"),
        (lambda: signal.pause(), "hang"),
    ],
)
def test_each_way_to_go_wrong_is_counted_and_its_input_kept(act, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "CPU_SECONDS", 0.1)
    monkeypatch.setattr(worker, "WALL_SECONDS", 0.2)
    target = bad_target(act)
    tally = soak([target], 12, 0, 2, tmp_path)["bad"]
    longer = [index for index in range(12) if len(input_of(target, [b"abc"], 0, index)) > 3]
    assert 2 < len(longer) < 12
    assert tally.inputs == 12
    if expected is None:
        assert (tally.findings, tally.refused) == ({}, len(longer))
        return
    kind = expected.partition(":")[0]
    assert all(what.startswith(kind) for what in tally.findings)
    assert any(what.startswith(expected) for what in tally.findings)  # a stack that is cut short has no place
    assert sorted(index for indices in tally.findings.values() for index in indices) == longer
    kept = [path for path in tmp_path.iterdir() if path.suffix != ".txt"]
    assert len(kept) >= 3
    assert all(path.stat().st_size > 3 for path in kept)


def test_a_mutator_that_fails_is_a_finding_and_the_run_goes_on(tmp_path):
    target = Target("odd", lambda folder: [b"abc"], lambda data, scratch: None, lambda rng, data: data[9:][0])
    tally = soak([target], 12, 0, 1, tmp_path)["odd"]
    (what,) = tally.findings
    assert what.startswith("mutator: IndexError")
    assert tally.read + len(tally.findings[what]) == tally.inputs == 12


def test_a_target_whose_valid_inputs_are_refused_is_a_finding(tmp_path):
    target = Target("dead", lambda folder: [b"abc"], lambda data, scratch: refuse())
    assert "a valid input is refused" in next(iter(soak([target], 5, 0, 1, tmp_path)["dead"].findings))


def test_inputs_depend_on_the_seed_and_their_number_alone():
    target = Target("any", lambda folder: [], lambda data, scratch: None)
    inputs = [input_of(target, [bytes(100), b"a" * 50], 1, index) for index in range(50)]
    assert inputs == [input_of(target, [bytes(100), b"a" * 50], 1, index) for index in range(50)]
    assert len(set(inputs)) > 45


def test_no_reader_fails_on_a_small_soak():
    command = [sys.executable, "-m", "tests.soak", "--inputs", "600", "--seed", "1", "--workers", "2"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stdout + finished.stderr
