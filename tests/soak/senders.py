"""Send attacks over sockets on this machine, and say what came of them."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.soak.hostile_http import Attack, Victim, post

__all__ = ["Report", "large_senders", "send_attacks", "slow_senders"]

THREADS = 8
REST = 0.002  # between two pieces, so that the server sees the first one alone
WAIT = 15.0  # for an answer that must come
AFTERWARDS = 0.3  # for more of an answer that has begun
STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
LARGE, SENT = 10_000_000, 9_900_000
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing breaks the connection off


@dataclass
class Report:
    """How often each status was answered, and what must not have happened."""

    statuses: Counter[int] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    allowed: frozenset[int] = frozenset()  # of 5xx

    def note(self, name: str, answer: bytes) -> None:
        for status in map(int, STATUS.findall(answer)):
            self.statuses[status] += 1
            if status >= 500 and status not in self.allowed:
                self.problems.append(f"{name}: {answer[:300]!r}")

    def __str__(self) -> str:
        found = ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items()))
        return f"answers {found or 'none'}; {len(self.problems)} problems"


def send_attacks(port: int, make: Callable[[int], Attack], count: int) -> Report:
    """Send ``make(0)``, ``make(1)``, …, a few at a time."""
    report = Report()

    def send(index: int) -> tuple[str, bytes | None]:
        attack = make(index)
        return f"{attack.name} {index}", _send(port, attack)

    with ThreadPoolExecutor(THREADS) as pool:
        for name, answer in pool.map(send, range(count)):
            if answer is None:
                report.problems.append(f"{name}: neither answered nor closed in {WAIT:.0f} s")
            else:
                report.note(name, answer)
    return report


def _send(port: int, attack: Attack) -> bytes | None:
    """The answer, as far as it is waited for; none where one was due and did not come."""
    answer = b""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=WAIT) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for piece in attack.pieces:
                connection.sendall(piece)
                time.sleep(REST)
            if attack.ending == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            if attack.ending in ("reset", "close"):
                return answer
            if attack.ending == "half-close":
                connection.shutdown(socket.SHUT_WR)
            while more := connection.recv(65_536):
                answer += more
                connection.settimeout(AFTERWARDS)
    except TimeoutError:
        return answer or None
    except OSError:  # the server broke off, which is its right
        pass
    return answer


def slow_senders(port: int, victim: Victim, count: int, cut_off: float) -> Report:
    """A byte from time to time, of a head or of a body; nothing at all; and answers that nobody reads."""
    body = post(victim.route("forward"), victim.tensors)
    unread = f"GET {victim.route('decoder')}?dtype=f32 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * 20
    stallers = (
        Staller("slow head", body[:10], b"a"),
        Staller("slow body", body[: body.index(b"\r\n\r\n") + 14], b"a"),
        Staller("silent", b"", b""),
        Staller("no reader", unread, b"a", reads=False),
    )
    return _in_a_loop_of_its_own(_stall_all(port, [stallers[n % 4] for n in range(count)], cut_off, frozenset()))


def large_senders(port: int, victim: Victim, count: int, cut_off: float) -> Report:
    """9.9 of 10 MB each, and then no more."""
    head = post(victim.route("forward"), b"").replace(b"Content-Length: 0", b"Content-Length: %d" % LARGE)
    staller = Staller("large sender", head + bytes(SENT), b"")
    return _in_a_loop_of_its_own(_stall_all(port, [staller] * count, cut_off, frozenset({503})))


def _in_a_loop_of_its_own(work: Coroutine[Any, Any, Report]) -> Report:
    """In a thread: the caller's may have a loop already, as that of a browser's tests has."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@dataclass(frozen=True)
class Staller:
    """Sends the start, then ``drip`` once in a while; only the server ends the connection."""

    name: str
    start: bytes
    drip: bytes
    reads: bool = True

    async def stall(self, connection: socket.socket, answer: bytearray) -> None:
        """Until the connection is ended from the other side."""
        tasks = [asyncio.create_task(self._send(connection))]
        if self.reads:
            tasks.append(asyncio.create_task(_read(connection, answer)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, self.start)
        while True:
            await asyncio.sleep(0.5)
            await loop.sock_sendall(connection, self.drip)


async def _read(connection: socket.socket, answer: bytearray) -> None:
    while more := await asyncio.get_running_loop().sock_recv(connection, 65_536):
        answer += more


async def _stall_all(port: int, stallers: list[Staller], cut_off: float, allowed: frozenset[int]) -> Report:
    report = Report(allowed=allowed)

    async def stall(staller: Staller) -> None:
        answer = bytearray()
        with socket.socket() as connection:
            connection.setblocking(False)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            try:
                async with asyncio.timeout(cut_off):
                    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
                    await staller.stall(connection, answer)
            except TimeoutError:
                report.problems.append(f"{staller.name}: still connected after {cut_off:.0f} s")
            except OSError:
                pass
        report.note(staller.name, bytes(answer))

    await asyncio.gather(*map(stall, stallers))
    return report
