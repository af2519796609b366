"""HTTP on a socket with limits: how many connections, how long a request may take to come, and who is answered."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from torchcaps.studio.limits import Limits

__all__ = ["limited_protocol"]


def limited_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol of a connection, as uvicorn takes it."""
    return type("LimitedProtocol", (_LimitedProtocol,), {"limits": limits})


class _LimitedProtocol(H11Protocol):
    """uvicorn's own waits for a request without end, and answers where HTTP no longer allows it."""

    limits: Limits
    clock: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._start_clock()
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "the studio is busy; try again in a moment")

    def connection_lost(self, exc: Exception | None) -> None:
        self.clock.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        if self.conn.their_state is not h11.SEND_BODY:  # else answered early, and the clock of the request goes on
            self.clock.cancel()
            self._start_clock()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """The answer is larger than the system takes at once; there is a limit to what all of them leave here."""
        super().pause_writing()
        others = cast("set[_LimitedProtocol]", self.connections - {self})
        unread = {each: each.transport.get_write_buffer_size() for each in others}
        total = self.transport.get_write_buffer_size() + sum(unread.values())
        for each in sorted(others, key=lambda each: each.clock.when()):
            if total > self.limits.unread_bytes and unread[each]:
                total -= unread[each]
                each.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is not HTTP; the request was not read to its end")

    def _start_clock(self) -> None:
        self.clock = self.loop.call_later(self.limits.request_seconds, self._time_is_up)

    def _time_is_up(self) -> None:
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            self.transport.abort()  # nobody reads the answer
        elif self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self.transport.close()  # a browser would take an answer for that of its next request
        elif self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._refuse(408, f"a whole request must come within {self.limits.request_seconds:g} seconds")

    def _refuse(self, status: int, text: str) -> None:
        """End the connection, with an answer where HTTP still allows one."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True  # the application learns it; what it still sends would break HTTP's rules
            cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head_only = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
            self._answer(status, b"" if head_only else json.dumps({"error": text}).encode())
        self.clock.cancel()
        self._start_clock()
        self.transport.close()

    def _answer(self, status: int, body: bytes) -> None:
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events: tuple[Any, ...] = (
            h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
