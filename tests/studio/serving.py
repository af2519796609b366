"""A studio on a socket, in a thread of its own."""

from __future__ import annotations

import logging
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from torchcaps.studio import Catalogue
from torchcaps.studio.limits import DEFAULT_LIMITS, Limits
from torchcaps.studio.server import serve


@dataclass
class Serving:
    """Its port, the lines that it printed, and the exceptions that its terminal would have shown."""

    port: int = 0
    lines: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)

    def ask(self, *pieces: bytes) -> bytes:
        """Send pieces of a request, and read until the studio ends the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            for piece in pieces:
                connection.sendall(piece)
            return b"".join(iter(lambda: connection.recv(65_536), b""))


@contextmanager
def serving(catalogue: Catalogue, host: str = "127.0.0.1", limits: Limits = DEFAULT_LIMITS) -> Iterator[Serving]:
    """Run it until the end of the block."""
    studio, ready, servers = Serving(), threading.Event(), []

    def started(server):
        servers.append(server)
        ready.set()

    options = dict(host=host, browser=False, say=studio.lines.append, on_start=started, limits=limits)
    thread = threading.Thread(target=serve, args=(catalogue,), kwargs=options)
    thread.start()
    assert ready.wait(20)
    studio.port = int(re.search(r"http://[^/]+:(\d+)/", studio.lines[0])[1])
    try:
        with _noting(studio.tracebacks):
            yield studio
    finally:
        servers[0].should_exit = True
        thread.join(20)
    assert not thread.is_alive()


@contextmanager
def _noting(tracebacks: list[str]) -> Iterator[None]:
    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info:
                tracebacks.append(logging.Formatter().format(record))

    handler, loggers = Handler(), [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
