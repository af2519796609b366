"""Hostile requests, slow senders and large ones against a studio: ``python -m tests.soak.requests --requests 10000``.

Ends with 1 when an answer is 5xx, stderr has a traceback, an ordinary prediction fails meanwhile, a connection that
stalls is not ended by the studio, or its memory is not back within 10 % after a minute. Only the large senders may be
told 503, that the studio is busy. Everything stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.studio_hostile import picture
from benchmarks.studio_load import resident_megabytes
from benchmarks.studio_process import RunningStudio, running_studio
from tests.soak.hostile_http import Victim, attack_of
from tests.soak.senders import Report, large_senders, send_attacks, slow_senders

from torchcaps.studio.tensors import MEDIA_TYPE

PATIENCE = 10.0  # seconds for an ordinary prediction; the machine is busy with the attack


@dataclass
class Visitor:
    """Somebody who goes on asking for predictions while the studio is attacked."""

    port: int
    victim: Victim
    times: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def predict(self) -> None:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{self.victim.route('forward')}",
            self.victim.tensors,
            {"Content-Type": MEDIA_TYPE},
        )
        began = time.perf_counter()
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                answer.read()
            self.times.append(time.perf_counter() - began)
        except OSError as error:  # of HTTP, too
            self.problems.append(f"an ordinary prediction: {error!r}")

    @contextmanager
    def asking(self, every: float = 0.2) -> Iterator[None]:
        gone = threading.Event()

        def ask() -> None:
            while not gone.wait(every):
                self.predict()

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield
        finally:
            gone.set()
            thread.join()


@dataclass
class Memory:
    """Resident megabytes of a process, and the most that were seen."""

    process_id: int
    most: float = 0.0

    def now(self) -> float:
        return resident_megabytes(self.process_id)

    @contextmanager
    def watching(self) -> Iterator[None]:
        ended = threading.Event()
        self.most = self.now()

        def watch() -> None:
            while not ended.wait(0.05):
                self.most = max(self.most, self.now())

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@dataclass(frozen=True)
class Plan:
    """How many requests and senders, and what is allowed.

    Args:
        slow: senders of a byte from time to time, silent ones, and ones that do not read.
        large: senders of 9.9 of 10 MB each, which then stall.
        cut_off: seconds in which a stalled connection must end.
        settle: seconds until memory is measured at the end.
        growth: of the memory after ordinary requests.
    """

    requests: int = 10_000
    seed: int = 0
    slow: int = 120
    large: int = 120
    cut_off: float = 45.0
    settle: float = 60.0
    growth: float = 1.1


def soak(studio: RunningStudio, plan: Plan, errors: Callable[[], str]) -> list[str]:
    """Attack a studio, print what comes of it, and return what must not have happened; ``errors`` is its stderr."""
    port, problems = studio.port, []
    victims = _victims(port)
    _warm_up(port, victims)
    memory, visitor = Memory(studio.process_id), Visitor(port, victims[0])
    start = memory.now()
    print(f"memory after ordinary requests: {start:.0f} MB")
    make = functools.partial(attack_of, victims[0], plan.seed)
    phases: dict[str, Callable[[], Report]] = {
        f"{plan.requests:,} hostile requests": lambda: send_attacks(port, make, plan.requests),
        f"{plan.slow} slow senders": lambda: slow_senders(port, victims[0], plan.slow, plan.cut_off),
        f"{plan.large} large senders": lambda: large_senders(port, victims[0], plan.large, plan.cut_off),
    }
    for name, act in phases.items():
        began = time.perf_counter()
        with memory.watching(), visitor.asking():
            report = act()
        problems += report.problems
        seconds = time.perf_counter() - began
        print(f"{name}: {seconds:.0f} s, {report}; memory at most {memory.most:.0f} MB", flush=True)
    time.sleep(plan.settle)
    visitor.predict()
    end = memory.now()
    print(f"memory {plan.settle:.0f} s later: {end:.0f} MB, {100 * end / start - 100:+.1f} %")
    print(f"ordinary predictions meanwhile: {len(visitor.times)}, the slowest {max(visitor.times, default=0):.2f} s")
    said = errors()
    tracebacks = said.count("Traceback (most recent call last)")
    print(f"the studio's terminal: {tracebacks} tracebacks, {len(said.splitlines())} lines")
    if tracebacks:
        problems.append(f"{tracebacks} tracebacks, the last: {said[-2000:]}")
    if end > plan.growth * start:
        problems.append(f"memory is not given back: {start:.0f} MB at the start, {end:.0f} MB at the end")
    return problems + visitor.problems


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.requests", description=__doc__)
    parser.add_argument("models", nargs="*", help="as for torchcaps studio; the shipped ones if left out")
    parser.add_argument("--requests", type=int, default=Plan.requests)
    parser.add_argument("--seed", type=int, default=Plan.seed)
    parser.add_argument("--slow", type=int, default=Plan.slow, help="slow senders")
    parser.add_argument("--large", type=int, default=Plan.large, help="senders of 9.9 of 10 MB, which then stall")
    parser.add_argument("--cut-off", type=float, default=Plan.cut_off, help="seconds until they must be cut off")
    parser.add_argument("--settle", type=float, default=Plan.settle, help="seconds until memory is measured at the end")
    options = vars(parser.parse_args())
    models = options.pop("models")
    with tempfile.TemporaryFile("w+") as errors, running_studio(models, errors=errors) as studio:

        def said() -> str:
            errors.seek(0)
            return errors.read()

        problems = soak(studio, Plan(**options), said)
    for problem in problems[:20]:
        print(" ", problem)
    print(f"{len(problems)} problems")
    return int(bool(problems))


def _victims(port: int) -> list[Victim]:
    models: list[dict[str, Any]] = json.loads(_get(port, "/api/models"))
    return [Victim(model["id"], tuple(model["image_shape"])) for model in models]


def _get(port: int, path: str, body: bytes | None = None, kind: str = MEDIA_TYPE) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": kind})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def _warm_up(port: int, victims: list[Victim]) -> None:
    """What a visitor does in the first minute; it loads the models and imports what is imported late."""
    for victim in victims:
        for _ in range(20):
            _get(port, victim.route("forward"), victim.tensors)
    for name in ("votes", "trace?iterations=3", "affine?kind=rotate", "python?kind=look"):
        _get(port, victims[0].route(name), victims[0].tensors)
    for path in (
        victims[0].route("decoder"),
        victims[0].route("statistics"),
        "/api/examples",
        "/",
        "/api/openapi.json",
    ):
        _get(port, path)
    for kind in ("PNG", "JPEG", "WEBP", "BMP", "GIF"):
        _get(port, f"/api/upload?model={victims[0].model_id}", picture(kind), "image/png")


if __name__ == "__main__":
    sys.exit(main())
