"""Kill a training at random moments and at every file event: ``python -m tests.soak.kills --kills 100 --seed 0``.

After each kill every checkpoint that can be seen must load. The run is then resumed, and must end with the bytes of one
that was never killed: weights, state of the optimiser, and log but for its times. Ends with 1 where one does not.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from torchcaps import from_pretrained
from torchcaps.train import fit, load_recipe
from torchcaps.train.checkpoint import all_checkpoints

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext

__all__ = [
    "EIGHT_STEPS",
    "TWO_STEPS",
    "DifferenceError",
    "Whole",
    "events_of",
    "kill_at_events",
    "kill_at_random",
    "killed_before_the_last_save",
    "processes",
]

CHANGES = (
    "model.conv_channels=2", "model.primary_types=1", "model.decoder_hidden=[4]", "model.conv_kernel=5",
    "training.batch_size=4", "data.validation=0.02", "log.every=1", "log.keep=4", "log.tensorboard=off",
)  # fmt: skip
# The last save of eight steps removes one checkpoint and takes from another what is there to resume.
EIGHT_STEPS = ("training.steps=8", "log.checkpoint_every=2", "log.validate_every=4")
TWO_STEPS = ("training.steps=2", "log.checkpoint_every=2")
MANY_STEPS = ("training.steps=60", "log.checkpoint_every=4", "log.validate_every=20")
TIMES = ("images_per_second", "step_ms", "seconds")
EVENTS = ("open", "os.mkdir", "os.rename", "os.symlink", "os.chmod", "tempfile.mkdtemp", "shutil.rmtree", "os.truncate")
EVENTS_IN_OPEN_FOLDERS = ("os.remove", "os.rmdir")  # rmtree names what it removes without the folder


class DifferenceError(Exception):
    """A run that was killed is not as one that was not."""


@functools.cache
def processes() -> ForkServerContext:
    """Each run is a process of its own that can be killed, forked from one that has imported torch already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torchcaps.train", "torch._dynamo"])  # the optimiser imports it at its first step
    return context


class Whole:
    """A run that nobody kills, to compare with."""

    def __init__(self, folder: Path, changes: tuple[str, ...]) -> None:
        self.folder, self.changes = folder, changes
        _finish(folder, changes)  # the first one also waits for imports
        again, started = folder.with_name(f"{folder.name}-again"), time.monotonic()
        _finish(again, changes)
        self.seconds = time.monotonic() - started
        self.compare(again)

    def compare(self, other: Path) -> None:
        """Raise unless another run has ended with the same bytes."""
        names = [sorted(str(file.relative_to(run)) for file in run.rglob("*")) for run in (self.folder, other)]
        if names[0] != names[1]:
            raise DifferenceError(f"files differ: {', '.join(sorted({*names[0]} ^ {*names[1]}))}")
        for name in ("final/model.safetensors", "checkpoints/last/training.safetensors", "recipe.toml"):
            if (self.folder / name).read_bytes() != (other / name).read_bytes():
                raise DifferenceError(f"{name} differs")
        if _records(self.folder) != _records(other):
            raise DifferenceError("metrics.jsonl differs")


def kill_at_random(whole: Whole, folder: Path, moments: random.Random, most: int) -> int:
    """Kill a run up to ``most`` times, resuming it each time, and compare its end; how many kills found it alive."""
    hits = 0
    for _ in range(most):
        process = _started(folder, whole.changes)
        time.sleep(moments.uniform(0, 0.7 * whole.seconds))
        process.kill()
        process.join()
        hits += process.exitcode == -signal.SIGKILL
        check_what_is_seen(folder)
    _finish(folder, whole.changes)
    whole.compare(folder)
    return hits


def events_of(folder: Path, changes: tuple[str, ...]) -> list[str]:
    """File events of a run, or of the rest of one, in words."""
    note = folder.with_name(f"{folder.name}-events")
    process = _started(folder, changes, sys.maxsize, note)
    process.join()
    return note.read_text().splitlines()


def killed_before_the_last_save(scratch: Path) -> Path:
    """A run of eight steps whose sixth step is saved, and no more."""
    saved = [
        number for number, event in enumerate(events_of(scratch / "all", EIGHT_STEPS), 1) if "step-00000006" in event
    ]
    process = _started(scratch / "middle", EIGHT_STEPS, saved[-1])
    process.join()
    return scratch / "middle"


def kill_at_events(whole: Whole, scratch: Path, start: Path | None, events: range) -> Iterator[int]:
    """For each event, kill a run just before it, resume it and compare its end; ``start`` is a run to go on with."""
    for event in events:
        folder = scratch / f"event-{event}"
        if start is not None:
            shutil.copytree(start, folder, symlinks=True)
        process = _started(folder, whole.changes, event)
        process.join()
        if process.exitcode != -signal.SIGKILL:
            raise DifferenceError(f"event {event} was not reached")
        check_what_is_seen(folder)
        try:
            _finish(folder, whole.changes)
            whole.compare(folder)
        except DifferenceError as error:
            raise DifferenceError(f"killed at event {event}: {error}") from error
        shutil.rmtree(folder)
        yield event


def check_what_is_seen(folder: Path) -> None:
    """Raise unless all checkpoints of a killed run, and its final weights, can be loaded."""
    for model in (*all_checkpoints(folder / "checkpoints"), folder / "final"):
        if model.exists():
            from_pretrained(model)


def _started(folder: Path, changes: tuple[str, ...], kill_at: int = 0, note: Path | None = None) -> BaseProcess:
    process = processes().Process(target=_train, args=(folder, changes, kill_at, note))
    process.start()
    return process


def _finish(folder: Path, changes: tuple[str, ...]) -> None:
    process = _started(folder, changes)
    process.join()
    if process.exitcode:
        raise DifferenceError(f"the run in {folder} cannot be resumed: exit status {process.exitcode}")


def _train(folder: Path, changes: tuple[str, ...], kill_at: int, note: Path | None) -> None:
    torch.set_num_threads(1)
    recipe = load_recipe("demo", [*CHANGES, *changes])
    seen: list[str] = []

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        here = event in EVENTS and any(str(argument).startswith(f"{folder}") for argument in arguments[:2])
        if here or event in EVENTS_IN_OPEN_FOLDERS:
            seen.append(f"{event} {arguments[:2]}".replace("\n", " "))
            if len(seen) == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    if kill_at:
        sys.addaudithook(watch)
    fit(recipe, run_dir=folder, device="cpu", progress=False, resume=(folder / "recipe.toml").exists())
    if note is not None:
        note.write_text("\n".join(seen))


def _records(folder: Path) -> list[dict[str, Any]]:
    """The log without what no two runs have in common."""
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    kept = [record for record in records if record["kind"] != "resumed"]
    return [{key: value for key, value in record.items() if key not in TIMES} for record in kept]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100, help="at random moments")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    started, moments = time.monotonic(), random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        whole, hits, runs = Whole(scratch / "long", MANY_STEPS), 0, 0
        while hits < options.kills:
            runs += 1
            hits += kill_at_random(whole, scratch / f"run-{runs}", moments, min(10, options.kills - hits))
            print(f"{hits} of {options.kills} random kills", flush=True)
        short, eight = Whole(scratch / "two", TWO_STEPS), Whole(scratch / "eight", EIGHT_STEPS)
        middle = killed_before_the_last_save(scratch)
        shutil.copytree(middle, scratch / "rest", symlinks=True)
        series = (
            (short, None, len(events_of(scratch / "counted", TWO_STEPS))),
            (eight, middle, len(events_of(scratch / "rest", EIGHT_STEPS))),
        )
        for which, start, count in series:
            for event in kill_at_events(which, scratch, start, range(1, count + 1)):
                if event % 10 == 0 or event == count:
                    print(f"killed at {event} of {count} events", flush=True)
    counts = " and ".join(str(count) for _, _, count in series)
    print(
        f"{hits} random kills of {runs} runs, and kills at {counts} file events of a first and of a last save: all end "
        f"with the files of a run that was never killed. {time.monotonic() - started:.0f} s"
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DifferenceError as error:
        sys.exit(f"{error}")
