"""A studio in a thread of the tests, for networks so small that a process of its own would not pay."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["thread_studio"]


@contextmanager
def thread_studio(models: Sequence[str | Path], data_name: str | None = None) -> Iterator[str]:
    """Address of a studio with these models, until the end of the block."""
    from torchcaps.studio import Catalogue, serve

    lines: queue.Queue[str] = queue.Queue()
    running: queue.Queue[Any] = queue.Queue()
    arguments = {"browser": False, "say": lines.put, "on_start": running.put}
    thread = threading.Thread(target=serve, args=(Catalogue(models, data_name),), kwargs=arguments)
    thread.start()
    line = lines.get(timeout=30)
    try:
        yield line[line.index("http://") :].split()[0]
    finally:
        running.get(timeout=30).should_exit = True
        thread.join(timeout=30)
