"""Ctrl-C and SIGTERM ask a run to stop: it finishes the step, saves and leaves."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["StopRequest", "TrainingInterruptedError", "stop_on_signals"]


class TrainingInterruptedError(KeyboardInterrupt):
    """The run was stopped from outside, after a clean save; the message says how to go on."""


class StopRequest:
    """Whether a signal came. A second Ctrl-C does not wait for the save."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __bool__(self) -> bool:
        return self.signal is not None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = number


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Note signals instead of dying of them; only the main thread may, elsewhere nothing is changed."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request._receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
