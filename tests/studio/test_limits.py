"""What the studio takes from everybody together, over sockets; ``python -m tests.soak.requests`` sends far more."""

from __future__ import annotations

import http.client
import json
import math
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace

import pytest
from benchmarks.studio_load import resident_megabytes
from benchmarks.studio_process import RunningStudio
from tests.soak.hostile_http import Victim, chunked, post
from tests.soak.requests import Plan, soak

import torchcaps
from studio.serving import serving
from torchcaps.studio import Catalogue, limits
from torchcaps.studio.limits import Limits
from torchcaps.studio.tensors import MEDIA_TYPE

PATIENT = Limits(  # a busy machine may take long between two lines of a test
    body_bytes=10_000_000,
    small_body_bytes=100_000,
    large_bodies=2,
    place_seconds=20.0,
    connections=40,
    request_seconds=30.0,
)
VICTIM = Victim("small", (1, 28, 28))
FORWARD = VICTIM.route("forward")
CLOSE = b"Connection: close\r\n"


@pytest.fixture(scope="module")
def small_catalogue(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / VICTIM.model_id
    model = torchcaps.create_model("capsnet", conv_channels=16, primary_types=4, decoder_hidden=(64, 128))
    model.save_pretrained(folder)
    return Catalogue([folder])


@pytest.fixture(scope="module")
def studio(small_catalogue):
    with serving(small_catalogue, limits=PATIENT) as studio:
        studio.ask(post(FORWARD, VICTIM.tensors, CLOSE))
        yield studio


@pytest.fixture(scope="module")
def hurried_studio(small_catalogue):
    with serving(small_catalogue, limits=replace(PATIENT, place_seconds=0.3, request_seconds=1.0)) as studio:
        yield studio


@pytest.fixture(autouse=True)
def _no_traceback(studio):
    """Of any studio: all of them write to the same loggers."""
    studio.tracebacks.clear()
    yield
    assert studio.tracebacks == []


def test_a_small_soak(hurried_studio, capsys):
    """Without its limit of memory: that of this process is also the other tests'."""
    plan = Plan(requests=100, seed=1, slow=12, large=6, cut_off=20, settle=0, growth=math.inf)
    running = RunningStudio(f"http://127.0.0.1:{hurried_studio.port}/", os.getpid())
    assert soak(running, plan, lambda: "\n".join(hurried_studio.tracebacks)) == []
    said = capsys.readouterr().out
    answers = re.findall(r"(slow|large) senders: .*answers (.*); 0 problems", said)
    assert [name for name, _ in answers] == ["slow", "large"]
    # The silent and those who do not read hear nothing, and whoever sends when the studio ends may lose its answer.
    assert all(re.search(r"408: [1-6]\b", statuses) for _, statuses in answers)


def parts(answer: bytes) -> tuple[int, bytes, str]:
    """Status, head and message of a refusal."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.lower(), json.loads(body)["error"]


def test_an_error_in_the_middle_is_answered_once_and_ends_the_connection(studio):
    status, head, message = parts(studio.ask(chunked(FORWARD, b"begun", end=b""), b"ZZ\r\n"))
    assert (status, message) == (400, "this is not HTTP; the request was not read to its end")
    assert b"connection: close" in head


def impatient(end: bytes) -> bytes:
    """A request for an unknown model that is answered before its body has come."""
    return chunked("/api/models/nobody/forward", b"begun", end=end).replace(b"Host", b"Expect: 100-continue\r\nHost")


def test_an_error_after_the_answer_ends_the_connection_without_another(studio):
    with socket.create_connection(("127.0.0.1", studio.port), timeout=10) as connection:
        connection.sendall(impatient(b""))
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert (answer.status, b"error" in answer.read()) == (404, True)
        connection.sendall(b"ZZ\r\n")
        assert connection.recv(65_536) == b""


def test_an_error_while_the_application_is_about_to_answer(studio):
    assert parts(studio.ask(impatient(b"ZZ\r\n")))[0] == 400


def test_who_leaves_in_the_middle_of_a_body_leaves_no_traceback(studio):
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", studio.port)) as connection:
            connection.sendall(post(FORWARD, VICTIM.tensors)[:-10])
            time.sleep(0.05)
    studio.ask(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + CLOSE + b"\r\n")


def test_a_slow_request_is_told_why(hurried_studio):
    status, head, message = parts(hurried_studio.ask(post(FORWARD, VICTIM.tensors)[:-10]))
    assert (status, message) == (408, "a whole request must come within 1 seconds")
    assert b"connection: close" in head


def test_a_connection_that_is_used_stays_open_beyond_the_time_of_one_request(hurried_studio):
    with closing(http.client.HTTPConnection("127.0.0.1", hurried_studio.port, timeout=10)) as connection:
        connection.connect()
        first = connection.sock
        for _ in range(6):
            time.sleep(0.2)
            connection.request("POST", FORWARD, VICTIM.tensors, {"Content-Type": MEDIA_TYPE})
            answer = connection.getresponse()
            assert (answer.status, len(answer.read()) > 0) == (200, True)
        assert connection.sock is first


def test_too_many_connections_are_told_and_the_first_ones_go_on(studio):
    with closing(Crowd(studio.port)) as crowd:
        crowd.add(PATIENT.connections)
        assert parts(studio.ask(b""))[0] == 503
        crowd.members[0].sendall(b"GET /config.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b" 200 " in crowd.members[0].recv(65_536)
    until(lambda: b" 200 " in studio.ask(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + CLOSE + b"\r\n"))


class Crowd:
    """Connections that stay open."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.members: list[socket.socket] = []

    def add(self, count: int, start: bytes = b"") -> None:
        for _ in range(count):
            self.members.append(socket.create_connection(("127.0.0.1", self.port), timeout=10))
            self.members[-1].sendall(start)

    @staticmethod
    def read(member: socket.socket) -> bytes:
        """Until the studio ends the connection."""
        found = b""
        with suppress(ConnectionResetError):
            while more := member.recv(65_536):
                found += more
        return found

    def close(self) -> None:
        for member in self.members:
            member.close()


def test_large_bodies_wait_for_a_place_and_small_ones_never(small_catalogue):
    large, limits = post(FORWARD, bytes(200_000), CLOSE), replace(PATIENT, place_seconds=0.5)
    with serving(small_catalogue, limits=limits) as studio, closing(Crowd(studio.port)) as crowd:
        crowd.add(limits.large_bodies, large[:-10])
        busy = (503, "too many large bodies come at once; try again in a moment")
        until(lambda: parts(studio.ask(large))[::2] == busy)  # not before the crowd has its places
        assert studio.ask(post(FORWARD, VICTIM.tensors, CLOSE)).startswith(b"HTTP/1.1 200 ")
        crowd.members[0].sendall(large[-10:])  # is whole now, and gives its place back
        assert parts(crowd.read(crowd.members[0]))[0] == 400  # read to its end; not a tensor
        assert parts(studio.ask(large))[0] == 400


def test_a_large_body_that_waited_is_served(studio):
    large = post(FORWARD, bytes(200_000), CLOSE)
    with closing(Crowd(studio.port)) as crowd:
        crowd.add(PATIENT.large_bodies, large[:-10])
        threading.Timer(0.1, crowd.close).start()
        assert parts(studio.ask(large))[0] == 400


def test_the_oldest_of_too_many_unread_answers_are_cut_off(small_catalogue):
    ask = f"GET {VICTIM.route('decoder')}?dtype=f32 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    more_than_the_system_takes = ask * 12 + ask.replace(b"Host", CLOSE + b"Host")
    with serving(small_catalogue, limits=Limits(unread_bytes=500_000)) as studio, closing(Crowd(studio.port)) as crowd:
        whole = len(studio.ask(more_than_the_system_takes))
        for _ in range(4):
            crowd.add(1, more_than_the_system_takes)
            time.sleep(0.2)
        lengths = [len(crowd.read(member)) for member in crowd.members]
    assert lengths[0] < whole
    assert lengths[-1] == whole


def until(happens: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.perf_counter() + seconds
    while not happens():
        assert time.perf_counter() < end
        time.sleep(0.02)


# Blocks among which others stay cannot be given back by freeing them. In a process that does nothing else.
HOLDER = """
import asyncio, runpy, sys
limits = runpy.run_path(sys.argv[1])
blocks = [b"x" * 60_000 for _ in range(2000)]
kept = blocks[::10]
del blocks
print("freed", flush=True)
input()
asyncio.run(limits["give_memory_back"]())
print("given back", flush=True)
input()
"""


@pytest.mark.skipif(limits._malloc_trim is None, reason="the C library gives memory back in another way")
def test_free_memory_is_given_back():
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with subprocess.Popen([sys.executable, "-c", HOLDER, limits.__file__], **pipes) as holder:
        assert holder.stdout.readline() == "freed\n"
        held = resident_megabytes(holder.pid)
        print(file=holder.stdin, flush=True)
        assert holder.stdout.readline() == "given back\n"
        assert resident_megabytes(holder.pid) < held - 60
        holder.communicate("\n")
