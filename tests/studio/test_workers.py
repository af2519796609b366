"""Requests that come together are served together, and each gets its own answer."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from torchcaps.studio import workers as workers_module
from torchcaps.studio.looking import forward
from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.workers import Workers


def run_alone(work):
    """Run in a thread of its own: a browser that another test has opened keeps a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@pytest.fixture
def workers():
    workers = Workers()
    yield workers
    workers.close()


@pytest.fixture
def batches(monkeypatch) -> list[int]:
    """Sizes of the batches that the network saw."""
    seen: list[int] = []

    def counted(network, images):
        seen.append(len(images))
        return forward(network, images)

    monkeypatch.setattr(workers_module, "forward", counted)
    return seen


def test_a_crowd_is_served_in_few_batches_and_nobody_gets_another_answer(catalogue, workers, batches):
    network = catalogue.network("small")
    images = torch.rand(40, 1, 28, 28)

    async def crowd() -> list[dict[str, torch.Tensor]]:
        return await asyncio.gather(*(workers.forward(network, images[i : i + 1]) for i in range(40)))

    answers = run_alone(crowd())
    with torch.inference_mode():
        together = forward(network, images)
    for name, value in together.items():
        torch.testing.assert_close(torch.cat([answer[name] for answer in answers]), value, rtol=1e-5, atol=1e-6)
    assert batches == [8] * 5
    assert sum(batches) == 40


def test_a_batch_never_grows_past_its_limit(catalogue, workers, batches):
    network = catalogue.network("small")

    async def crowd() -> None:
        await asyncio.gather(*(workers.forward(network, torch.zeros(30, 1, 28, 28)) for _ in range(7)))

    run_alone(crowd())
    assert batches == [30] * 7  # what one person sends is never divided, nor joined beyond the limit


def test_an_error_reaches_everyone_who_asked_and_the_next_are_served(catalogue, workers, monkeypatch):
    network = catalogue.network("small")

    def broken(network, images):
        raise ArithmeticError("no")

    async def ask() -> list[object]:
        image = torch.zeros(1, 1, 28, 28)
        with monkeypatch.context() as patch:
            patch.setattr(workers_module, "forward", broken)
            failed = await asyncio.gather(*(workers.forward(network, image) for _ in range(5)), return_exceptions=True)
        return [*failed, await workers.forward(network, image)]

    *failed, served = run_alone(ask())
    assert all(isinstance(error, ArithmeticError) for error in failed)
    assert "lengths" in served


def test_one_who_leaves_does_not_stop_the_others(catalogue, workers):
    network = catalogue.network("small")

    async def ask() -> dict[str, torch.Tensor]:
        image = torch.zeros(1, 1, 28, 28)
        leaving = asyncio.create_task(workers.forward(network, image))
        staying = asyncio.create_task(workers.forward(network, image))
        await asyncio.sleep(0)
        leaving.cancel()
        return await staying

    assert "lengths" in run_alone(ask())


def test_too_many_who_wait_are_told(workers, monkeypatch):
    monkeypatch.setattr(workers_module, "MOST_WAITING", 3)
    gate = threading.Event()

    async def ask() -> list[object]:
        waiting = [asyncio.create_task(workers.run(gate.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(RefusalError, match="busy") as refused:
            await workers.run(gate.wait)
        assert refused.value.status == 503
        gate.set()
        return await asyncio.gather(*waiting)

    assert run_alone(ask()) == [True] * 3


def test_work_has_no_gradients(workers):
    assert run_alone(workers.run(torch.is_inference_mode_enabled))
