"""Read the inputs of one job in a child process, within limits of time and memory that the system keeps."""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import signal
import struct
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from tests.soak.allowed import allowed
from tests.soak.mutate import input_of
from tests.soak.target import Target

__all__ = ["Finding", "Job", "Progress", "work"]

CPU_SECONDS = 5  # for one input; of the processor, so that a busy machine makes no finding
WALL_SECONDS = 60  # for a reader that waits for something that never comes
MEMORY_GROWTH = 2**30


@dataclass(frozen=True)
class Job:
    """Inputs ``first`` … ``last - 1`` of a target."""

    target: Target
    first: int
    last: int


@dataclass(frozen=True)
class Finding:
    kind: str  # crash, hang, memory, exception or mutator
    index: int
    what: str


class Progress:
    """What a child has done so far, in memory that outlives it."""

    FORM = struct.Struct("<qqqdd")  # index of the input at hand, read, refused, seconds in all, seconds of the slowest

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, self.FORM.size)

    def tell(self, index: int, read: int, refused: int, seconds: float, slowest: float) -> None:
        self._memory[:] = self.FORM.pack(index, read, refused, seconds, slowest)

    def ask(self) -> tuple[int, int, int, float, float]:
        return self.FORM.unpack(self._memory[:])


def work(job: Job, seeds: Sequence[bytes], seed: int, folder: Path, progress: Progress) -> None:
    """Read every input of the job; findings go to ``folder/findings``, line by line, so that a crash loses none.

    Death by a signal is for the parent to count: SIGPROF or SIGALRM are a hang, all others a crash.
    """
    scratch = folder / "scratch"
    scratch.mkdir()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    warnings.simplefilter("ignore")
    with (folder / "findings").open("w") as findings, (folder / "stacks").open("w") as stacks:
        faulthandler.enable(stacks)
        for alarm in (signal.SIGPROF, signal.SIGALRM):
            faulthandler.register(alarm, stacks, chain=True)
        try:
            for valid in seeds:
                job.target.read(valid, scratch)  # imports what it needs before memory is limited
        except BaseException as error:
            _note(findings, Finding("seed", -1, _told(error)))
            return
        _limit_memory()
        _read_all(job, seeds, seed, scratch, progress, findings)


def _read_all(
    job: Job, seeds: Sequence[bytes], seed: int, scratch: Path, progress: Progress, findings: IO[str]
) -> None:
    expected = allowed(job.target.name)
    read, refused, total, slowest = 0, 0, 0.0, 0.0
    for index in range(job.first, job.last):
        progress.tell(index, read, refused, total, slowest)
        try:
            data = input_of(job.target, seeds, seed, index)
        except Exception as error:  # the soak's own mistake, which should not end a long run
            _note(findings, Finding("mutator", index, _told(error)))
            continue
        _set_alarms(CPU_SECONDS, WALL_SECONDS)
        started = time.perf_counter()
        try:
            job.target.read(data, scratch)
            read += 1
        except expected as error:
            refused += 1
            if _out_of_memory(error):
                _note(findings, Finding("memory", index, _told(error)))
        except BaseException as error:
            kind = "memory" if _out_of_memory(error) else "exception"
            _note(findings, Finding(kind, index, _told(error)))
        _set_alarms(0, 0)
        seconds = time.perf_counter() - started
        total, slowest = total + seconds, max(slowest, seconds)
    progress.tell(job.last, read, refused, total, slowest)


def _set_alarms(processor: float, wall: float) -> None:
    signal.setitimer(signal.ITIMER_PROF, processor)
    signal.setitimer(signal.ITIMER_REAL, wall)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * mmap.PAGESIZE + MEMORY_GROWTH
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _out_of_memory(error: BaseException | None) -> bool:
    """Also where the reader has caught it and raises its own."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "memory" in str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _told(error: BaseException) -> str:
    """The exception, and the lines that were at work: what tells one finding from another."""
    while isinstance(error.__cause__, MemoryError):
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    ours = next((frame for frame in reversed(frames) if "torchcaps" in frame.filename), frames[-1])
    places = dict.fromkeys(f"{Path(frame.filename).name}:{frame.lineno}" for frame in (ours, frames[-1]))
    return f"{type(error).__name__} at {' in '.join(places)}: {str(error)[:200]}"


def _note(findings: IO[str], finding: Finding) -> None:
    findings.write(json.dumps(asdict(finding)) + "\n")
    findings.flush()
