"""Stands before the application: who may ask, how much may be sent, and the headers that every answer carries."""

from __future__ import annotations

import asyncio
import ipaddress
import json
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from torchcaps.studio.limits import DEFAULT_LIMITS, Limits
from torchcaps.studio.refusal import RefusalError

__all__ = ["Guard"]

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


class Guard:
    """ASGI middleware.

    A page of another origin may not use the studio of the person who visits it: requests with a foreign ``Origin`` are
    refused, and so is a ``Host`` that is neither a loopback name nor one named here, which stops DNS rebinding.

    Args:
        hosts: further names in ``Host`` that are answered; ``"*"`` stands for every numeric address, which no DNS
            server can hand out.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        self.app = app
        self.hosts = {host.lower() for host in hosts} | LOCAL_NAMES
        self.limits = limits
        self.places = asyncio.Semaphore(limits.large_bodies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # not spoken here
            await send({"type": "websocket.close", "code": 1008})
            return

        headers = Headers(scope=scope)
        declared = headers.get("content-length", "0")
        body = _Body(receive, self.limits, self.places)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                if "expect" not in headers:  # else the sender waits for an answer
                    await body.drain(int(declared[:20]) if declared.isdecimal() else 0)
                answered = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answered[name] = value
                answered.setdefault("Cache-Control", "no-store")
            await send(message)

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
        if not declared.isdecimal():
            await _answer(send_guarded, 400, "Content-Length must be a whole number")
            return
        if int(declared[:20]) > self.limits.body_bytes:
            await _answer(send_guarded, 413, body.too_large)
            return
        try:
            await self.app(scope, body.receive, send_guarded)
        except ClientDisconnect:  # before its body was whole
            pass
        finally:
            body.forget()

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


class _Body:
    """The body of a request: counted, and with a place among the large ones once it is one of them."""

    def __init__(self, receive: Receive, limits: Limits, places: asyncio.Semaphore) -> None:
        self._receive, self._limits, self._places = receive, limits, places
        self._seen = 0
        self._ended = False
        self._has_place = False
        self.too_large = f"the body is larger than {limits.body_bytes:,} bytes; send a smaller picture or fewer of them"

    async def receive(self) -> Message:
        message = await self._next()
        if self._seen > self._limits.body_bytes:
            raise RefusalError(self.too_large, 413)
        if self._seen > self._limits.small_body_bytes and not self._has_place:
            await self._take_place()
        return message

    async def drain(self, declared: int) -> None:
        """Read the rest without keeping it, within reason."""
        self.forget()
        if declared <= MOST_DRAINED_BYTES:
            while not self._ended and self._seen <= MOST_DRAINED_BYTES:
                await self._next()

    def forget(self) -> None:
        """Give the place back."""
        if self._has_place:
            self._places.release()
            self._has_place = False

    async def _next(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        self._ended = not message.get("more_body", False)
        return message

    async def _take_place(self) -> None:
        try:
            async with asyncio.timeout(self._limits.place_seconds):
                await self._places.acquire()
        except TimeoutError as error:
            raise RefusalError("too many large bodies come at once; try again in a moment", 503) from error
        self._has_place = True


async def _answer(send: Send, status: int, text: str) -> None:
    body = json.dumps({"error": text}, ensure_ascii=False).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
