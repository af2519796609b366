"""Network work away from the event loop: a few threads, and many small requests as one batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from torchcaps.studio.looking import Tensors, forward
from torchcaps.studio.network import Network
from torchcaps.studio.refusal import RefusalError

__all__ = ["Workers"]

P = ParamSpec("P")
Result = TypeVar("Result")

THREADS = 2
LARGEST_BATCH = 8  # the more in a batch, the longer the last to come waits; beyond 8 little is gained
MOST_WAITING = 1000


@dataclass
class _Queue:
    """Requests for one network that wait until a thread is free for their batch."""

    running: int = 0
    waiting: deque[tuple[Tensor, asyncio.Future[Tensors]]] = field(default_factory=deque)

    def take(self) -> list[tuple[Tensor, asyncio.Future[Tensors]]]:
        """As many requests as one batch holds, but 1, 2, 4, 8, … of them.

        Convolutions keep plans and memory for each batch size they have seen, and four sizes are few.
        """
        most = 1 << (len(self.waiting).bit_length() - 1)
        taken = [self.waiting.popleft()]
        images = len(taken[0][0])
        while len(taken) < most and images + len(self.waiting[0][0]) <= LARGEST_BATCH:
            taken.append(self.waiting.popleft())
            images += len(taken[-1][0])
        return taken


class Workers:
    """A bounded pool of threads.

    :meth:`forward` gathers what arrives while a batch runs into the next one, so that fifty people cost little more
    than one. Without a crowd nothing waits: a batch starts as soon as there is a request and a thread is free.
    """

    def __init__(self, threads: int = THREADS) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="studio")
        self._queues: dict[int, _Queue] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._busy = 0
        self._long = asyncio.Lock()

    async def run(self, work: Callable[P, Result], *arguments: P.args, **keywords: P.kwargs) -> Result:
        """Call ``work`` in a thread, without gradients."""
        if self._busy >= MOST_WAITING:
            raise RefusalError("the studio is busy; try again in a moment", 503)
        self._busy += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._pool, lambda: _without_gradients(work, *arguments, **keywords)
            )
        finally:
            self._busy -= 1

    async def run_long(self, work: Callable[P, Result], *arguments: P.args, **keywords: P.kwargs) -> Result:
        """The same for work of seconds: one at a time, so that a thread is left for what is short."""
        async with self._long:
            return await self.run(work, *arguments, **keywords)

    async def forward(self, network: Network, images: Tensor) -> Tensors:
        """:func:`torchcaps.studio.looking.forward`, in one batch with what others ask at the same time."""
        answer: asyncio.Future[Tensors] = asyncio.get_running_loop().create_future()
        queue = self._queues.setdefault(id(network), _Queue())
        if len(queue.waiting) >= MOST_WAITING:
            raise RefusalError("the studio is busy; try again in a moment", 503)
        queue.waiting.append((images, answer))
        if queue.running < self._threads:
            queue.running += 1
            task = asyncio.create_task(self._drain(network, queue))
            self._tasks.add(task)  # the loop itself keeps only a weak reference
            task.add_done_callback(self._tasks.discard)
        return await answer

    def close(self) -> None:
        """Let running work end and take no more."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _drain(self, network: Network, queue: _Queue) -> None:
        try:
            while queue.waiting:
                taken = queue.take()
                try:
                    together = await self.run(forward, network, torch.cat([images for images, _ in taken]))
                    parts = {name: value.split([len(i) for i, _ in taken]) for name, value in together.items()}
                except Exception as error:
                    for _, answer in taken:
                        if not answer.done():
                            answer.set_exception(error)
                    continue
                for place, (_, answer) in enumerate(taken):
                    if not answer.done():  # the asker may have gone
                        answer.set_result({name: part[place] for name, part in parts.items()})
        finally:
            queue.running -= 1
            if not queue.running:
                del self._queues[id(network)]


def _without_gradients(work: Callable[P, Result], *arguments: P.args, **keywords: P.kwargs) -> Result:
    with torch.inference_mode():
        return work(*arguments, **keywords)
