"""Fifty people at once: a studio in a process of its own, and clients that ask again as soon as they are answered."""

from __future__ import annotations

import asyncio
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors

WARM_UP_SECONDS = 5.0
MEMORY_SAMPLE_SECONDS = 5.0


@dataclass(frozen=True)
class LoadResult:
    """Latencies in seconds, resident memory in MB."""

    clients: int
    seconds: float
    requests: int
    errors: int
    p50: float
    p95: float
    p99: float
    longest: float
    memory: tuple[float, ...]
    processor_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.clients} clients for {self.seconds:.0f} s: {self.requests} predictions, "
            f"{self.requests / self.seconds:.0f} a second, {self.errors} errors\n"
            f"latency: p50 {1000 * self.p50:.0f} ms, p95 {1000 * self.p95:.0f} ms, p99 {1000 * self.p99:.0f} ms, "
            f"longest {1000 * self.longest:.0f} ms\n"
            f"the server had {self.processor_seconds:.0f} s of {os.cpu_count()} cores × {self.seconds:.0f} s\n"
            f"memory of the server in MB, every {MEMORY_SAMPLE_SECONDS:.0f} s: "
            f"{' '.join(f'{value:.0f}' for value in self.memory)}"
        )


def measure_load(
    process_id: int, port: int, model_id: str, images: torch.Tensor, clients: int, seconds: float
) -> LoadResult:
    """``images`` is uint8 ``[N, C, H, W]``; each request sends one of them, in turn."""
    bodies = [pack_tensors({"image": image}) for image in images]
    return asyncio.run(_measure(process_id, port, model_id, bodies, clients, seconds))


async def _measure(
    process_id: int, port: int, model_id: str, bodies: list[bytes], clients: int, seconds: float
) -> LoadResult:
    latencies: list[float] = []
    failures: list[str] = []
    start = time.perf_counter() + WARM_UP_SECONDS
    end = start + seconds
    memory: list[float] = []
    processor: list[float] = []

    async def client(number: int) -> None:
        place = number
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < end:
            body = bodies[place % len(bodies)]
            place += clients
            began = time.perf_counter()
            try:
                status = await _ask(reader, writer, port, model_id, body)
            except (OSError, asyncio.IncompleteReadError) as error:
                failures.append(repr(error))
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            if status != 200:
                failures.append(str(status))
            elif began >= start:
                latencies.append(time.perf_counter() - began)
        writer.close()

    async def watch() -> None:
        await asyncio.sleep(WARM_UP_SECONDS)
        while time.perf_counter() < end:
            memory.append(resident_megabytes(process_id))
            processor.append(processor_seconds(process_id))
            await asyncio.sleep(MEMORY_SAMPLE_SECONDS)

    await asyncio.gather(watch(), *(client(number) for number in range(clients)))
    memory.append(resident_megabytes(process_id))
    processor.append(processor_seconds(process_id))
    latencies.sort()

    def percentile(share: float) -> float:
        return latencies[min(len(latencies) - 1, int(share * len(latencies)))]

    return LoadResult(
        clients=clients,
        seconds=seconds,
        requests=len(latencies),
        errors=len(failures),
        p50=percentile(0.5),
        p95=percentile(0.95),
        p99=percentile(0.99),
        longest=latencies[-1],
        memory=tuple(memory),
        processor_seconds=processor[-1] - processor[0],
    )


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, model_id: str, body: bytes
) -> int:
    head = (
        f"POST /api/models/{model_id}/forward HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Content-Type: {MEDIA_TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)
    if length is not None:
        await reader.readexactly(int(length[1]))
    return int(answer.split(b" ", 2)[1])


def resident_megabytes(process_id: int) -> float:
    """Memory that a process holds; 0 where the system does not say."""
    status = Path(f"/proc/{process_id}/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(found[1]) / 1000 if found else 0.0


def processor_seconds(process_id: int) -> float:
    """Time that a process has had on the cores; 0 where the system does not say."""
    file = Path(f"/proc/{process_id}/stat")
    if not file.exists():
        return 0.0
    fields = file.read_text().rpartition(")")[2].split()  # what follows the name in brackets
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
