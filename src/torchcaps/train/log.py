"""What a run says while it goes: JSON lines for programs, a progress bar for people."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from torchcaps._run_files import log_lines
from torchcaps.errors import TorchcapsError

__all__ = ["JsonLines", "LogSink", "PlainProgress", "ProgressBar", "ProgressSink", "make_progress", "read_log"]

SECONDS_BETWEEN_LINES = 10.0
SECONDS_TO_THE_FIRST_LINE = 3.0
SECONDS_BETWEEN_MOVES = 0.1
Clock = Callable[[], float]


class LogSink(Protocol):
    """Takes every record of a run; a record is a flat dictionary with ``kind`` and ``step``."""

    def write(self, record: dict[str, Any]) -> None: ...
    def close(self) -> None: ...


class ProgressSink(LogSink, Protocol):
    """A sink that also hears of every step. It reads nothing from the device, so that no step waits for it."""

    def step(self, done: int) -> None: ...


class JsonLines:
    """One record a line, each complete as soon as it is written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(self, record: dict[str, Any]) -> None:
        try:
            self._file.write((json.dumps(record) + "\n").encode())
        except OSError as error:
            raise TorchcapsError(
                f"the log {self._file.name} cannot be written: {error.strerror or error}. Checkpoints written before "
                "are untouched; make room and go on with --resume"
            ) from error

    def close(self) -> None:
        self._file.close()


def read_log(file: Path, kind: str) -> list[dict[str, Any]]:
    """The records of one kind that an ended run wrote, in order; none without a log, as for an ensemble."""
    found = []
    for number, (_, record) in enumerate(log_lines(file) if file.exists() else (), start=1):
        if record is None:
            raise TorchcapsError(f"the log {file} is damaged in line {number}; remove that run to make it again")
        if record["kind"] == kind:
            found.append(record)
    return found


class ProgressBar:
    """A bar on a terminal with loss, error, images a second and the time that is left."""

    def __init__(self, total: int, done: int, title: str, clock: Clock = time.monotonic) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
            TextColumn("{task.fields[status]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            speed_estimate_period=math.inf,  # over the last 1,000 moves: steps may take longer than any fixed time
            get_time=clock,
        )
        self._clock, self._moved = clock, -math.inf
        self._task = self._progress.add_task(title, total=total, completed=done, status="")
        self._validation = ""
        self._progress.start()

    def step(self, done: int) -> None:
        now = self._clock()
        if now - self._moved >= SECONDS_BETWEEN_MOVES:
            self._moved = now
            self._progress.update(self._task, completed=done)

    def write(self, record: dict[str, Any]) -> None:
        if record["kind"] == "validation":
            self._validation = f"  held out {_percent(record['error'])}"
        elif record["kind"] == "train":
            status = f"{_status(record)}{self._validation}"
            self._progress.update(self._task, completed=record["step"], status=status)
        elif record["kind"] == "note":
            self._progress.console.print(f"note: {record['text']}", style="yellow", markup=False)

    def close(self) -> None:
        self._progress.stop()


class PlainProgress:
    """A line every few seconds, where there is no terminal."""

    def __init__(self, total: int, title: str, clock: Clock = time.monotonic) -> None:
        self._total, self._title, self._clock = total, title, clock
        self._status = ""
        self._first: tuple[float, int] | None = None  # when which step was done first
        self._next_line = clock() + SECONDS_TO_THE_FIRST_LINE

    def step(self, done: int) -> None:
        now = self._clock()
        if self._first is None:
            self._first = now, done
        if now >= self._next_line:
            self._print_step(done)

    def write(self, record: dict[str, Any]) -> None:
        if record["kind"] == "note":
            self._print(f"note: {record['text']}")
        elif record["kind"] == "validation":
            self._print(f"step {record['step']:,}: held out {_percent(record['error'])}")
        elif record["kind"] == "train":
            self._status = _status(record)
            if record["step"] == self._total:
                self._print_step(record["step"])

    def _print_step(self, done: int) -> None:
        now = self._clock()
        start, first = self._first or (now, done)
        left = self._total - done
        seconds = round(left * (now - start) / (done - first)) if left and done > first else None
        self._next_line = now + (SECONDS_TO_THE_FIRST_LINE if seconds is None else SECONDS_BETWEEN_LINES)
        parts = [self._status, f"{timedelta(seconds=seconds)} left" if seconds is not None else ""]
        said = "  ".join(part for part in parts if part)
        self._print(f"step {done:,} of {self._total:,}" + (f": {said}" if said else ""))

    def close(self) -> None:
        pass

    def _print(self, text: str) -> None:
        print(f"{self._title}: {text}", file=sys.stderr, flush=True)


def make_progress(total: int, done: int, title: str) -> ProgressSink:
    """A bar on a terminal, lines elsewhere."""
    return ProgressBar(total, done, title) if sys.stderr.isatty() else PlainProgress(total, title)


def _status(record: dict[str, Any]) -> str:
    return f"loss {record['loss']:.4f}  error {_percent(record['error'])}  {record['images_per_second']:,.0f} images/s"


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
