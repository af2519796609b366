"""Divide the inputs over child processes, and gather what they found."""

from __future__ import annotations

import json
import multiprocessing
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path

from tests.soak.mutate import input_of
from tests.soak.target import Target
from tests.soak.worker import Finding, Job, Progress, work

__all__ = ["Tally", "soak"]

JOB_INPUTS = 5000
SAVED_OF_EACH = 3  # inputs that are kept of findings alike
MEMORY_DISK = Path("/dev/shm")


@dataclass
class Tally:
    """What became of a target's inputs."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    findings: dict[str, list[int]] = field(default_factory=dict)  # kind and place → indices of the inputs


@dataclass
class _Child:
    job: Job
    folder: Path
    progress: Progress
    process: ForkProcess


def soak(
    targets: Sequence[Target],
    inputs: int,
    seed: int,
    workers: int,
    saved: Path,
    advanced: Callable[[int], None] = lambda _: None,
) -> dict[str, Tally]:
    """Read mutated inputs until ``inputs`` are done; those with a finding are written to ``saved``."""
    with tempfile.TemporaryDirectory(prefix="soak-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None) as folder:
        home = Path(folder)
        seeds = {target.name: _seeds(target, home) for target in targets}
        waiting = _jobs(targets, inputs)
        tallies = {target.name: Tally() for target in targets}
        running: list[_Child] = []
        done = 0
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    job = waiting.pop(0)
                    running.append(_started(job, seeds[job.target.name], seed, home))
                wait([child.process.sentinel for child in running], timeout=0.5)
                for child in [child for child in running if not child.process.is_alive()]:
                    running.remove(child)
                    name = child.job.target.name
                    finished = _count(child, tallies[name], seeds[name], seed, saved)
                    done += finished - child.job.first
                    if finished < child.job.last:
                        waiting.insert(0, Job(child.job.target, finished, child.job.last))
                    shutil.rmtree(child.folder)
                advanced(done + sum(max(0, child.progress.ask()[0] - child.job.first) for child in running))
        finally:
            for child in running:
                child.process.kill()
    return tallies


def _seeds(target: Target, home: Path) -> list[bytes]:
    with tempfile.TemporaryDirectory(dir=home) as folder:
        return target.seeds(Path(folder))


def _jobs(targets: Sequence[Target], inputs: int) -> list[Job]:
    """Every target gets its share, the last one what rounding leaves; long jobs in pieces."""
    shares, jobs = sum(target.share for target in targets), []
    edges = [round(inputs * sum(target.share for target in targets[:end]) / shares) for end in range(len(targets) + 1)]
    for target, start, end in zip(targets, edges, edges[1:], strict=False):
        count = end - start
        jobs += [Job(target, first, min(first + JOB_INPUTS, count)) for first in range(0, count, JOB_INPUTS)]
    return jobs


def _started(job: Job, seeds: Sequence[bytes], seed: int, home: Path) -> _Child:
    folder, progress = Path(tempfile.mkdtemp(dir=home)), Progress()
    progress.tell(job.first, 0, 0, 0.0, 0.0)
    process = multiprocessing.get_context("fork").Process(target=work, args=(job, seeds, seed, folder, progress))
    process.start()
    return _Child(job, folder, progress, process)


def _count(child: _Child, tally: Tally, seeds: Sequence[bytes], seed: int, saved: Path) -> int:
    """Enter what a child found; the index to go on from."""
    index, read, refused, seconds, slowest = child.progress.ask()
    lines = (child.folder / "findings").read_text().splitlines() if (child.folder / "findings").exists() else []
    findings = [Finding(**json.loads(line)) for line in lines]
    if spoilt := next((finding for finding in findings if finding.kind == "seed"), None):
        tally.findings.setdefault(f"a valid input is refused: {spoilt.what}", []).append(-1)
        return child.job.last
    if died := child.process.exitcode:
        findings.append(_death(died, index, child.folder / "stacks"))
        index += 1
    tally.inputs += index - child.job.first
    tally.read += read
    tally.refused += refused
    tally.seconds += seconds
    tally.slowest = max(tally.slowest, slowest)
    for finding in findings:
        alike = tally.findings.setdefault(f"{finding.kind}: {_without_numbers(finding.what)}", [])
        alike.append(finding.index)
        if len(alike) <= SAVED_OF_EACH and finding.kind != "mutator":
            name = f"{child.job.target.name}-{finding.index}-{finding.kind}"
            saved.mkdir(parents=True, exist_ok=True)
            (saved / name).write_bytes(input_of(child.job.target, seeds, seed, finding.index))
            (saved / f"{name}.txt").write_text(finding.what + "\n")
    return index


def _death(exit_code: int, index: int, stacks: Path) -> Finding:
    places = re.findall(r'File ".*?([^/]+)", line (\d+)', stacks.read_text() if stacks.exists() else "")
    where = " in ".join(":".join(place) for place in places[:3])
    if -exit_code in (signal.SIGPROF, signal.SIGALRM):
        return Finding("hang", index, where)
    name = signal.Signals(-exit_code).name if exit_code < 0 else f"exit status {exit_code}"
    return Finding("crash", index, f"{name} at {where}")


def _without_numbers(what: str) -> str:
    """Findings that differ in the numbers of their message, or in quoted text, are alike."""
    place, _, message = what.partition(": ")
    return f"{place}: {re.sub(r'[0-9]+', '#', message)[:60]}"
