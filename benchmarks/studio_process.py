"""A studio in a process of its own, which ends with whoever started it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

__all__ = ["running_studio"]

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


@contextmanager
def running_studio(models: Sequence[str]) -> Iterator[str]:
    """Address of a studio with these models."""
    command = [sys.executable, "-c", PROGRAM, "studio", *models, "--no-browser"]
    environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    with process:
        try:
            assert process.stdout is not None
            line = next((line for line in process.stdout if "http://" in line), "")
            if not line:
                raise RuntimeError("the studio ended before it listened")
            yield line[line.index("http://") :].split()[0]
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
