"""Ctrl-C, SIGTERM and the end of the time ask a run to stop: it finishes the step, saves and leaves."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["OutOfTimeError", "StopRequest", "TrainingInterruptedError", "stop_on_signals"]


class TrainingInterruptedError(KeyboardInterrupt):
    """The run was stopped from outside, after a clean save; the message says how to go on."""


class OutOfTimeError(TrainingInterruptedError):
    """The run was stopped because its time was over, after a clean save."""


class StopRequest:
    """Whether a signal came or the time is over. A second Ctrl-C does not wait for the save.

    Args:
        seconds: how long the run may take from now on; left out, as long as it needs.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.signal: int | None = None
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def __bool__(self) -> bool:
        return self.signal is not None or self.out_of_time

    @property
    def out_of_time(self) -> bool:
        return self._deadline is not None and time.monotonic() >= self._deadline

    def error(self, message: str) -> TrainingInterruptedError:
        """What to raise after the save; a signal is the stronger reason."""
        kind = OutOfTimeError if self.signal is None and self.out_of_time else TrainingInterruptedError
        return kind(message)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stop_on_signals(request: StopRequest | None = None) -> Iterator[StopRequest]:
    """Note signals instead of dying of them; only the main thread may, elsewhere nothing is changed."""
    request = StopRequest() if request is None else request
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request._receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
