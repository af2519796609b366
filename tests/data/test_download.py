"""Downloads against a server on this machine: resumed, checked, and in place only when whole."""

from __future__ import annotations

import errno
import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from torchcaps.data import download as module
from torchcaps.data.download import UnreachableError, download
from torchcaps.errors import DataError

CONTENT = bytes(range(256)) * 4000  # a megabyte
MD5 = hashlib.md5(CONTENT).hexdigest()


class Server:
    """Serves CONTENT; ``cuts`` says after how many bytes each next answer breaks off."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.cuts: list[int] = []
        self.ranges: list[str | None] = []
        self.honours_range = True
        self.states_length = True
        self.length: str | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.ranges.append(self.headers.get("Range"))
                start = 0
                if outer.honours_range and self.headers.get("Range"):
                    start = int(self.headers["Range"].removeprefix("bytes=").rstrip("-"))
                if self.path == "/absent":
                    self.send_error(404)
                    return
                if start >= len(outer.content) > 0:
                    self.send_error(416)
                    return
                body = outer.content[start:]
                self.send_response(206 if start else 200)
                if outer.states_length:
                    self.send_header("Content-Length", str(len(body)) if outer.length is None else outer.length)
                self.end_headers()
                self.wfile.write(body[: outer.cuts.pop(0)] if outer.cuts else body)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/file"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def server():
    running = Server()
    yield running
    running.server.shutdown()
    running.server.server_close()


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_file_arrives(server, tmp_path):
    download(server.url, tmp_path / "new" / "file", md5=MD5)
    assert (tmp_path / "new" / "file").read_bytes() == CONTENT
    assert names(tmp_path / "new") == ["file"]


def test_a_broken_line_is_taken_up_where_it_broke(server, tmp_path):
    server.cuts = [300_000, 200_000]
    download(server.url, tmp_path / "file", md5=MD5)
    assert server.ranges == [None, "bytes=300000-", "bytes=500000-"]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_an_interrupted_program_goes_on_later(server, tmp_path):
    server.cuts = [100_000, 1, 1]
    with pytest.raises(DataError, match="broke after 100,002 of 1,024,000 bytes; run it again to go on"):
        download(server.url, tmp_path / "file", md5=MD5)
    assert names(tmp_path) == ["file.part"]
    download(server.url, tmp_path / "file", md5=MD5)
    assert server.ranges[-1] == "bytes=100002-"
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert names(tmp_path) == ["file"]


def test_a_server_without_ranges_starts_over(server, tmp_path):
    server.honours_range = False
    server.cuts = [300_000]
    download(server.url, tmp_path / "file", md5=MD5)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_leftover_of_another_file_is_replaced(server, tmp_path):
    (tmp_path / "file.part").write_bytes(b"something else entirely")
    download(server.url, tmp_path / "file", md5=MD5)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_complete_leftover_needs_no_bytes(server, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT)
    download(server.url, tmp_path / "file", md5=MD5)
    assert server.ranges == [f"bytes={len(CONTENT)}-"]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_without_a_checksum_nothing_is_joined(server, tmp_path):
    (tmp_path / "file.part").write_bytes(b"old")
    download(server.url, tmp_path / "file")
    assert server.ranges == [None]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(server, tmp_path):
    with pytest.raises(DataError, match="checksum is wrong"):
        download(server.url, tmp_path / "file", md5="0" * 32)
    assert names(tmp_path) == []


@pytest.mark.parametrize("states_length", [True, False])
def test_a_file_above_the_limit_leaves_nothing(server, tmp_path, states_length):
    server.states_length = states_length
    with pytest.raises(DataError, match="limit of 5,000"):
        download(server.url, tmp_path / "file", md5=MD5, max_bytes=5_000)
    assert names(tmp_path) == []


def test_a_full_disk_leaves_nothing(server, tmp_path, monkeypatch):
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(DataError, match=r"the disk is full.*--data-dir"):
        download(server.url, tmp_path / "file", md5=MD5)
    assert names(tmp_path) == []


def test_refusals_and_silence_are_told_apart(server, tmp_path):
    with pytest.raises(DataError, match="answered 404") as refused:
        download(server.url.replace("/file", "/absent"), tmp_path / "file", md5=MD5)
    assert not isinstance(refused.value, UnreachableError)
    with pytest.raises(UnreachableError, match="not reachable"):
        download("http://127.0.0.1:1/file", tmp_path / "file", md5=MD5, timeout=2)


def test_ctrl_c_keeps_what_has_come(server, tmp_path, monkeypatch):
    original = module._next_chunk
    calls = iter(range(10))

    def interrupted(response):
        if next(calls) == 1:
            raise KeyboardInterrupt
        return original(response)

    monkeypatch.setattr(module, "CHUNK", 1000)
    monkeypatch.setattr(module, "_next_chunk", interrupted)
    with pytest.raises(KeyboardInterrupt):
        download(server.url, tmp_path / "file", md5=MD5)
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:1000]


@pytest.mark.parametrize("length", ["²", "9" * 5000, "-1", "0x10", ""])
def test_a_length_that_is_no_number_is_passed_over(server, tmp_path, length):
    server.length = length
    download(server.url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT
