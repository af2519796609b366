"""How much the studio takes from everybody together, and how it gives memory back."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["DEFAULT_LIMITS", "Limits", "give_memory_back"]


@dataclass(frozen=True)
class Limits:
    """What one request and all connections together may take.

    Bodies in memory are at most ``large_bodies * body_bytes + connections * small_body_bytes``: about 250 MB. Unread
    answers are at most as much.

    Args:
        body_bytes: of one request.
        small_body_bytes: a body up to this size is always read; a larger one needs one of the places below.
        large_bodies: bodies beyond the small size that are in memory at once, until their requests are answered.
        place_seconds: for which a larger body waits for a place; then the studio is busy.
        unread_bytes: of answers that wait for their readers; beyond it those who wait longest are cut off.
        connections: open at once; a browser has six.
        request_seconds: until a whole request is there, head and body, and again until its answer is taken. They count
            from the begin of the connection, or from the answer before.
    """

    body_bytes: int = 10_000_000
    small_body_bytes: int = 262_144
    large_bodies: int = 12
    place_seconds: float = 10.0
    unread_bytes: int = 250_000_000
    connections: int = 500
    request_seconds: float = 30.0


DEFAULT_LIMITS = Limits()


async def give_memory_back() -> None:
    """Return to the system what is free in the heap.

    The C library keeps freed blocks below its threshold for mmap, which large blocks raise up to 32 MB; after a crowd
    of uploads that is most of them.
    """
    if _malloc_trim is not None:
        await asyncio.to_thread(_malloc_trim, 0)


def _find_malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim  # of glibc alone
    except (AttributeError, OSError, TypeError):
        return None


_malloc_trim = _find_malloc_trim()
