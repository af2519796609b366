"""The real thing: a socket, HTTP that is none, and Ctrl-C."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
import torch

from studio.serving import serving
from torchcaps.errors import TorchcapsError
from torchcaps.studio.addresses import opened_at
from torchcaps.studio.server import serve
from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors, unpack_tensors


@pytest.fixture(scope="module")
def port(catalogue):
    with serving(catalogue) as studio:
        yield studio.port


def test_a_prediction_over_the_wire(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    body = pack_tensors({"image": torch.zeros(1, 28, 28)})
    for _ in range(2):  # the connection stays open
        connection.request("POST", "/api/models/small/forward", body, {"Content-Type": MEDIA_TYPE})
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.getheader("server") is None
        assert unpack_tensors(answer.read())["lengths"].shape == (1, 10)
    connection.close()


def test_a_large_body_is_refused_with_an_answer(port):
    """Not with a broken connection, which a browser could not explain to anyone."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/api/upload?model=small", bytes(50_000_000), {"Content-Type": "image/png"})
    answer = connection.getresponse()
    assert answer.status == 413
    assert b"larger than" in answer.read()
    connection.close()


@pytest.mark.parametrize(
    "text",
    [
        b"GARBAGE\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET //etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /api/models HTTP/1.1\r\n\r\n",
        b"GET /api/models HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        b"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1e9\r\n\r\n",
        b"POST /api/upload HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    ],
    ids=range(13),
)
def test_http_that_is_none(port, text):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer == b"" or re.match(rb"HTTP/1\.1 4\d\d ", answer), answer[:100]
    assert b"Traceback" not in answer
    assert b"root:" not in answer


def test_a_client_that_says_nothing_holds_nobody_up(port):
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    test_a_prediction_over_the_wire(port)
    for connection in silent:
        connection.close()


def test_a_taken_port_is_an_error_in_words(port, catalogue):
    with pytest.raises(TorchcapsError, match=f"port {port}.*--port"):
        serve(catalogue, port=port, browser=False)


def test_ctrl_c_ends_it_cleanly_and_another_address_is_warned_about(small_run):
    command = [sys.executable, "-m", "torchcaps", "studio", str(small_run), "--no-browser", "--no-compare"]
    with subprocess.Popen(
        [*command, "--host", "0.0.0.0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            address = re.search(r"The studio is at http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            assert address is not None
            others = opened_at("0.0.0.0", int(address[1]))[1]  # none on a machine without a network
            if others:
                assert process.stdout.readline().split(" open ")[1].strip().split(" or ") == others
            for other in others:
                with urllib.request.urlopen(f"{other}config.json", timeout=10) as answer:
                    assert answer.status == 200
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 130
            errors = process.stderr.read()
        finally:
            process.kill()  # nothing happens to one that has ended
    assert "not a loopback address" in errors
    assert "Traceback" not in errors


def test_ctrl_c_at_the_very_first_moment_ends_it_cleanly(small_run):
    program = (
        "import os, signal, sys\n"
        "from torchcaps.studio.catalogue import Catalogue\n"
        "from torchcaps.studio.server import serve\n"
        "try:\n"
        "    serve(Catalogue([sys.argv[1]]), browser=False, say=lambda line: os.kill(os.getpid(), signal.SIGINT))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    command = [sys.executable, "-c", program, str(small_run)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stdout) == (0, "interrupted\n")
    assert "Traceback" not in result.stderr


def test_answers_are_not_held_back(port):
    """Headers and body leave in two parts; with Nagle's algorithm each answer would take 40 ms more."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        connection.request("GET", "/config.json")
        connection.getresponse().read()
        times.append(time.perf_counter() - start)
    connection.close()
    assert min(times[1:]) < 0.03  # the best of them: other work on the machine only adds
