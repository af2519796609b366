"""A studio in a process of its own, which ends with whoever started it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO
from urllib.parse import urlsplit

__all__ = ["RunningStudio", "running_studio"]

PATIENCE = 10  # seconds for a clean end

# Its input closes when the starter ends, also by a signal that leaves no time to clean up; then nobody needs it.
PROGRAM = """
import os, sys, threading
def watch():
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=watch, daemon=True).start()
from torchcaps.cli.app import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class RunningStudio:
    """Where it answers, and as which process."""

    address: str
    process_id: int

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 80


@contextmanager
def running_studio(models: Sequence[str], *options: str, errors: IO[str] | None = None) -> Iterator[RunningStudio]:
    """A studio with these models, until the end of the block; ``errors`` is a file that gets what it says on stderr."""
    command = [sys.executable, "-c", PROGRAM, "studio", *models, "--no-browser", *options]
    environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        env=environment,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if "http://" in line), "")
            if not line:
                raise RuntimeError("the studio ended before it listened")
            yield RunningStudio(line[line.index("http://") :].split()[0], process.pid)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
