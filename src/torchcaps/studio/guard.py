"""Stands before the application: who may ask, how much may be sent, and the headers that every answer carries."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["MOST_BODY_BYTES", "Guard"]

MOST_BODY_BYTES = 10_000_000
MOST_HEAD_BYTES = 65_536
MOST_DRAINED_BYTES = 100_000_000  # read and thrown away so that the sender gets an answer and no broken connection
LOCAL_NAMES = frozenset({"localhost"})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; font-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class _TooLargeError(Exception):
    pass


class Guard:
    """ASGI middleware.

    A page of another origin may not use the studio of the person who visits it: requests with a foreign ``Origin`` are
    refused, and so is a ``Host`` that is neither a loopback name nor one named here, which stops DNS rebinding.

    Args:
        hosts: further names in ``Host`` that are answered; ``"*"`` stands for every numeric address, which no DNS
            server can hand out.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), most_bytes: int = MOST_BODY_BYTES) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts} | LOCAL_NAMES
        self.most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # not spoken here
            await send({"type": "websocket.close", "code": 1008})
            return

        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        if len(scope["raw_path"]) + len(scope["query_string"]) > MOST_HEAD_BYTES:
            await _answer(send_guarded, 414, f"the address is longer than {MOST_HEAD_BYTES:,} bytes")
            return
        if sum(len(name) + len(value) for name, value in headers.raw) > MOST_HEAD_BYTES:
            await _answer(send_guarded, 431, f"the headers are longer than {MOST_HEAD_BYTES:,} bytes")
            return
        reason = self._foreign(headers, scope)
        if reason is not None:
            await _answer(send_guarded, 403, reason)
            return
        limited = _Limited(receive, self.most_bytes)
        declared = headers.get("content-length", "0")
        try:
            if not declared.isdecimal():
                await _answer(send_guarded, 400, "Content-Length must be a whole number")
                return
            if int(declared[:20]) > self.most_bytes:
                raise _TooLargeError
            await self.app(scope, limited, send_guarded)
        except _TooLargeError:
            if not started:
                await limited.drain(int(declared[:20]))
                text = f"the body is larger than {self.most_bytes:,} bytes; send a smaller picture or fewer of them"
                await _answer(send_guarded, 413, text)

    def _foreign(self, headers: Headers, scope: Scope) -> str | None:
        host = headers.get("host", "")
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
        except ValueError:
            name = ""
        if not self._known(name):
            return "this studio answers to its own address only; open the one that it printed when it was started"
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{scope.get('scheme', 'http')}://{host}".lower():
            return "pages of another origin may not use this studio; open its own page"
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "")
        if site in ("cross-site", "same-site") and (mode != "navigate" or scope["path"].startswith("/api")):
            return "another site may link to this page but not read from it"
        return None

    def _known(self, name: str) -> bool:
        if name in self.hosts:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or "*" in self.hosts


class _Limited:
    """A request body that ends in :class:`_TooLargeError` after so many bytes."""

    def __init__(self, receive: Receive, most_bytes: int) -> None:
        self.receive, self.most_bytes = receive, most_bytes
        self.seen = 0
        self.ended = False

    async def __call__(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request":
            self.seen += len(message.get("body", b""))
            self.ended = not message.get("more_body", False)
            if self.seen > self.most_bytes:
                raise _TooLargeError
        return message

    async def drain(self, declared: int) -> None:
        """Read the rest without keeping it, within reason."""
        if declared > MOST_DRAINED_BYTES:
            return
        while not self.ended and self.seen <= MOST_DRAINED_BYTES:
            message: dict[str, Any] = dict(await self.receive())
            if message["type"] != "http.request":
                return
            self.seen += len(message.get("body", b""))
            self.ended = not message.get("more_body", False)


async def _answer(send: Send, status: int, text: str) -> None:
    body = json.dumps({"error": text}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
