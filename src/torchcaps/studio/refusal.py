"""A request that the studio does not serve, and why."""

from __future__ import annotations

from torchcaps.errors import TorchcapsError

__all__ = ["RefusalError"]


class RefusalError(TorchcapsError):
    """Becomes the answer ``{"error": message}`` with this status; the message is for the person who asked."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
