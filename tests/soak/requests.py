"""Hostile requests, slow senders and large ones against a studio: ``python -m tests.soak.requests --requests 10000``.

Ends with 1 when an answer is 5xx, stderr has a traceback, an ordinary prediction fails meanwhile, a connection that
stalls is not ended by the studio, or its memory is not back within 10 % after a minute. Only the large senders may be
told 503, that the studio is busy. Everything stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.studio_hostile import picture
from benchmarks.studio_load import resident_megabytes
from benchmarks.studio_process import running_studio
from tests.soak.hostile_http import Victim, attack_of
from tests.soak.senders import Report, large_senders, send_attacks, slow_senders

from torchcaps.studio.tensors import MEDIA_TYPE

MOST_GROWTH = 1.1  # of the memory, once the attack is over
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.requests", description=__doc__)
    parser.add_argument("models", nargs="*", help="as for torchcaps studio; the shipped ones if left out")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slow", type=int, default=120, help="slow senders")
    parser.add_argument("--large", type=int, default=120, help="senders of 9.9 of 10 MB each, which then stall")
    parser.add_argument("--cut-off", type=float, default=45.0, help="seconds in which a stalled connection must end")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds until memory is measured at the end")
    options = parser.parse_args()
    with (
        tempfile.TemporaryFile("w+") as errors,
        running_studio(options.models, "--port", "0", errors=errors) as studio,
    ):
        victims = _victims(studio.port)
        _warm_up(studio.port, victims)
        memory, visitor = Memory(studio.process_id), Visitor(studio.port, victims[0])
        start = memory.now()
        print(f"memory after ordinary requests: {start:.0f} MB")
        problems: list[str] = []

        def phase(name: str, act: Callable[[], Report]) -> None:
            began = time.perf_counter()
            with memory.watching(), visitor.asking():
                report = act()
            problems.extend(report.problems)
            print(
                f"{name}: {time.perf_counter() - began:.0f} s, {report}, memory at most {memory.most:.0f} MB",
                flush=True,
            )

        attacks = (attack_of(victims[0], options.seed, index) for index in range(options.requests))
        phase(f"{options.requests} hostile requests", lambda: send_attacks(studio.port, attacks))
        phase(
            f"{options.slow} slow senders",
            lambda: slow_senders(studio.port, victims[0], options.slow, options.cut_off),
        )
        phase(
            f"{options.large} large senders",
            lambda: large_senders(studio.port, victims[0], options.large, options.cut_off),
        )
        time.sleep(options.settle)
        end = memory.now()
        tracebacks = _tracebacks(errors)
        visitor.predict()
    print(f"memory {options.settle:.0f} s later: {end:.0f} MB, {100 * end / start - 100:+.1f} %")
    print(f"ordinary predictions meanwhile: {len(visitor.times)}, the slowest {max(visitor.times, default=0):.2f} s")
    print(f"tracebacks: {tracebacks}")
    problems += visitor.problems
    problems += [f"{tracebacks} tracebacks"] * bool(tracebacks)
    problems += ["memory is not given back"] * (end > MOST_GROWTH * start)
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


def _tracebacks(errors: Any) -> int:
    errors.seek(0)
    text = errors.read()
    if text:
        Path(tempfile.gettempdir(), "soak-requests-stderr").write_text(text)
    return text.count("Traceback (most recent call last)")


if __name__ == "__main__":
    sys.exit(main())
