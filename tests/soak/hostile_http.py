"""What breaks servers, as bytes for a socket: HTTP that is none, halves of requests, and bodies that lie."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

from benchmarks.studio_hostile import PICTURE_FORMATS, Fault, chance_faults, hostile_paths, image_body, picture
from tests.soak.mutate import damaged

from torchcaps.studio.tensors import MEDIA_TYPE

__all__ = ["Attack", "Victim", "attack_of"]

Ending = Literal["answer", "half-close", "close", "reset"]
HOST = b"Host: 127.0.0.1\r\n"
GET = b"GET /api/models HTTP/1.1\r\n" + HOST
LAST = GET + b"Connection: close\r\n\r\n"  # whatever came before, after this one the connection ends


@dataclass(frozen=True)
class Victim:
    """The model that is asked for, and the shape ``(C, H, W)`` of its pictures."""

    model_id: str
    image_shape: tuple[int, int, int]

    def route(self, name: str) -> str:
        return f"/api/models/{self.model_id}/{name}"

    @functools.cached_property
    def tensors(self) -> bytes:
        C, H, W = self.image_shape
        return image_body([1, C, H, W], bytes(C * H * W), "U8")


@dataclass(frozen=True)
class Attack:
    """Pieces that are sent with a short rest between them, and how the connection ends.

    ``answer`` promises that the server answers or closes; the others leave, with or without a goodbye.
    """

    name: str
    pieces: tuple[bytes, ...]
    ending: Ending = "answer"


def attack_of(victim: Victim, seed: int, index: int) -> Attack:
    """Attack ``index`` of a seed: the same in every run, in whatever order they are sent."""
    rng = random.Random(f"{seed}:{index}")
    return rng.choice(KINDS)(rng, victim)


def post(path: str, body: bytes, headers: bytes = b"", kind: str = MEDIA_TYPE) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + HOST + headers + b"\r\n" + body


def chunked(path: str, *chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nContent-Type: {MEDIA_TYPE}\r\nTransfer-Encoding: chunked\r\n".encode() + HOST
    return head + b"\r\n" + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + end


def _any_post(rng: random.Random, victim: Victim) -> str:
    """A route that reads bodies; in some of them the model is unknown and the answer comes before the body."""
    name = rng.choice(("forward", "forward", "votes", "trace", "python?kind=routing"))
    return rng.choice((victim.route(name), victim.route(name), "/api/models/nobody/forward", "/api/upload?model=x"))


def _leaving(rng: random.Random) -> Ending:
    return rng.choice(("half-close", "close", "reset"))


def _cut(rng: random.Random, data: bytes, most: int = 4) -> tuple[bytes, ...]:
    places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(most)))
    return tuple(data[start:end] for start, end in itertools.pairwise((0, *places, len(data))))


def _request_line(rng: random.Random, _: Victim) -> Attack:
    methods = (b"GET", b"get", b"G\x00T", b"", b"BREW", b"CONNECT", b"TRACE", b"A" * 9000, b"PRI", b"HEAD", b"OPTIONS")
    targets = (
        b"/",
        b"*",
        b"/" + b"a" * 70_000,
        b"http://evil.example/",
        b"evil.example:80",
        b"",
        b"/\xff\xfe",
        b"/\x7f",
    )
    numbered = b"HTTP/1.1 HTTP/1.0 HTTP/0.9 HTTP/2.0 HTTP/9.9 http/1.1".split()
    line = b" ".join((rng.choice(methods), rng.choice(targets), rng.choice((*numbered, b"HTTP/1.1 x", b"", b"HTTP/"))))
    ends = (b"\r\n", b"\n", b"\r", b"\r\n\r\n")
    return Attack("request line", (line + rng.choice(ends) + HOST + b"\r\n\r\n",), "half-close")


def _other_protocol(rng: random.Random, _: Victim) -> Attack:
    upgrade = GET + b"Connection: Upgrade\r\nUpgrade: %b\r\n%b\r\n"
    websocket = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    text = rng.choice(
        (
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.randbytes(30),
            upgrade % (b"websocket", websocket) + rng.randbytes(20),
            upgrade % (b"h2c", b"HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(100),
            b"GET /\r\n",
            b"SSH-2.0-OpenSSH_9.2\r\n",
            b"EHLO 127.0.0.1\r\n",
            rng.randbytes(rng.randrange(1, 300)),
        )
    )
    return Attack("other protocol", _cut(rng, text, 2), "half-close")


def _head(rng: random.Random, _: Victim) -> Attack:
    lines = (
        b"X : 1",
        b" folded: 1",
        b"no colon",
        b"X: \x00",
        b"X: \xff\xfe\x80",
        b"\xc3\xa9: 1",
        b"X: " + b"a" * rng.choice((60_000, 70_000, 400_000)),
        b"\r\n".join(b"X%d: 1" % number for number in range(rng.choice((50, 4000)))),
        b"Host: evil.example",
        b"Origin: http://evil.example",
        b"Connection: close, keep-alive, \x01",
        b"Expect: 200-ok",
        b"Content-Type: \xe2\x82\xac",
        b"Range: bytes=0-18446744073709551615",
        b"Accept-Encoding: " + b"gzip;q=1.0, " * 3000,
        b"X: 1\rY: 2",
        b"X: 1\nY: 2",
    )
    chosen = b"".join(line + b"\r\n" for line in rng.sample(lines, rng.randrange(1, 4)))
    return Attack("head", _cut(rng, GET + chosen + b"\r\n"), "half-close")


def _lengths(rng: random.Random, victim: Victim) -> Attack:
    headers = (
        b"Content-Length: -5",
        b"Content-Length: +5",
        b"Content-Length: 1e9",
        b"Content-Length: " + b"9" * 30,
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5, 6",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: gzip",
        b"Transfer-Encoding: chunked, chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Transfer-Encoding:\x0bchunked",
        b"Content-Length: 0x10",
        b"Content-Length: 1_0",
        b"Content-Length:",
        b"Expect: 100-continue\r\nContent-Length: 5",
        b"Expect: 100-continue\r\nTransfer-Encoding: chunked",
    )
    head = f"POST {_any_post(rng, victim)} HTTP/1.1\r\n".encode() + HOST + rng.choice(headers) + b"\r\n\r\n"
    smuggled = rng.choice((b"0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n", b"hello", b"", b"GET / HTTP/1.1\r\n\r\n"))
    return Attack("lengths", (head, smuggled), _leaving(rng))


def _chunks(rng: random.Random, victim: Victim) -> Attack:
    """The error comes after the request was begun, and sometimes after it was answered."""
    wrong = (b"ZZ\r\n", b"-1\r\n", b"f" * 30 + b"\r\n", b"5\r\nhelloXX", b"5;" + b"a" * 70_000, b"\r\n\r\n")
    trailers = (
        b"0\r\nX : 1\r\n\r\n",
        b"0\r\n\xff\r\n\r\n",
        b"0\r\n" + b"X: 1\r\n" * 9000 + b"\r\n",
        b"0\r\nHost: a\r\n\r\n",
    )
    good = tuple(victim.tensors[: rng.randrange(1, 900)] for _ in range(rng.randrange(4)))
    whole = chunked(_any_post(rng, victim), *good, end=b"")
    if rng.random() < 0.1:
        return Attack("endless chunk", (whole, b"f" * 16 + b"\r\n" + bytes(1000)), _leaving(rng))
    return Attack("chunks", (whole, rng.choice(wrong + trailers)), rng.choice(("half-close", "close", "answer")))


def _half(rng: random.Random, victim: Victim) -> Attack:
    whole = rng.choice(
        (LAST, post(_any_post(rng, victim), victim.tensors), chunked(victim.route("forward"), bytes(90)))
    )
    return Attack("half", _cut(rng, whole[: rng.randrange(len(whole))]), _leaving(rng))


def _whole_and_gone(rng: random.Random, victim: Victim) -> Attack:
    """The answer has nobody to go to."""
    name = rng.choice(("forward", "votes", "trace"))
    return Attack("whole and gone", (post(victim.route(name), victim.tensors),), rng.choice(("close", "reset")))


def _pipeline(rng: random.Random, victim: Victim) -> Attack:
    valid = (GET + b"\r\n", post(victim.route("forward"), victim.tensors), post("/api/models/nobody/votes", b"x"))
    wrong = (
        b"GARBAGE\r\n\r\n",
        GET + b"X : 1\r\n\r\n",
        b"\x00",
        chunked("/api/upload", b"a", end=b"ZZ\r\n"),
        b"GET / HTTP/3\r\n\r\n",
    )
    before = [rng.choice(valid) for _ in range(rng.randrange(1, 8))]
    text = b"".join((*before, rng.choice(wrong), *before))
    return Attack("pipeline", _cut(rng, text, 3), rng.choice(("answer", "close", "reset")))


def _expectation(rng: random.Random, victim: Victim) -> Attack:
    whole = post(_any_post(rng, victim), victim.tensors, b"Expect: 100-continue\r\n")
    place = whole.index(b"\r\n\r\n") + 4
    rest = rng.choice((b"", victim.tensors[:50], victim.tensors, victim.tensors + b"GARBAGE\r\n\r\n"))
    return Attack("expectation", (whole[:place], rest), _leaving(rng))


def _damaged_bytes(rng: random.Random, victim: Victim) -> Attack:
    seeds = (
        LAST,
        post(victim.route("forward"), victim.tensors),
        chunked(victim.route("votes"), victim.tensors[:100], victim.tensors[100:]),
        GET + b"\r\n" + post(victim.route("trace?iterations=3"), victim.tensors),
    )
    return Attack("damaged bytes", _cut(rng, damaged(rng, rng.choice(seeds), seeds)), _leaving(rng))


def _damaged_tensors(rng: random.Random, victim: Victim) -> Attack:
    route = rng.choice(("forward", "forward", "votes", "trace", "decode", "python?kind=look"))
    body = damaged(rng, victim.tensors, (victim.tensors, b'{"capsules":{"dtype":"F32","shape":[1,10,16]'))
    return Attack("damaged tensors", _cut(rng, post(victim.route(route), body, b"Connection: close\r\n"), 2))


@functools.cache
def _pictures() -> tuple[bytes, ...]:
    return tuple(picture(kind) for kind in PICTURE_FORMATS)


def _damaged_picture(rng: random.Random, victim: Victim) -> Attack:
    body = damaged(rng, rng.choice(_pictures()), _pictures())
    path = f"/api/upload?model={victim.model_id}"
    return Attack("damaged picture", (post(path, body, b"Connection: close\r\n", "image/png"),))


def _damaged_query(rng: random.Random, victim: Victim) -> Attack:
    paths = (
        victim.route("trace?iterations=3"),
        victim.route("affine?kind=rotate"),
        victim.route("python?kind=dimensions&vector=1,2&index=3"),
        "/api/examples?label=3&random=5",
        "/api/examples/7?source=digits-sample",
        f"/api/upload?model={victim.model_id}&invert=auto",
    )
    path = quote(damaged(rng, rng.choice(paths).encode()), safe="/?&=%,.@")
    whole = b"GET /" + path.lstrip("/").encode()[:60_000] + b" HTTP/1.1\r\nConnection: close\r\n" + HOST + b"\r\n"
    return Attack("damaged query", (whole,))


def _fault(fault: Fault) -> Attack:
    """One of the requests that are sound HTTP and wrong in what they say."""
    headers = {"Host": "127.0.0.1", "Connection": "close", "Content-Length": str(len(fault.body))} | {
        name.title(): value for name, value in fault.headers.items()
    }
    head = f"{fault.method} {quote(fault.path, safe='/?&=%:')} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return Attack(fault.name, (head.encode("latin-1") + b"\r\n" + fault.body,))


def _path_trick(rng: random.Random, victim: Victim) -> Attack:
    return _fault(rng.choice(list(hostile_paths(victim.model_id))))


def _chance_fault(rng: random.Random, victim: Victim) -> Attack:
    return _fault(next(chance_faults(victim.model_id, victim.image_shape, seed=rng.randrange(2**32))))


KINDS: tuple[Callable[[random.Random, Victim], Attack], ...] = (
    _request_line,
    _other_protocol,
    _head,
    _lengths,
    _chunks,
    _chunks,
    _half,
    _whole_and_gone,
    _pipeline,
    _expectation,
    _damaged_bytes,
    _damaged_bytes,
    _damaged_tensors,
    _damaged_picture,
    _damaged_query,
    _path_trick,
    _chance_fault,
)
