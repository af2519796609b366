"""Timing on a GPU: captured graphs, device events, fresh inputs that do not fit into the cache together."""

from __future__ import annotations

import csv
import datetime
import platform
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

__all__ = ["append_rows", "capture", "device_line", "microseconds", "percentile"]


def capture(work: Sequence[Callable[[], object]], warm_up: int = 3) -> Callable[[], None]:
    """All of ``work`` as one CUDA graph, so that no launch gap is measured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(warm_up):
            for part in work:
                part()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for part in work:
            part()
    return graph.replay


def microseconds(replay: Callable[[], object], parts: int = 1, repeats: int = 40, seconds: float = 0.25) -> list[float]:
    """Sorted times of one part in µs."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def timed(count: int) -> float:
        start.record()
        for _ in range(count):
            replay()
        end.record()
        end.synchronize()
        return 1e3 * start.elapsed_time(end) / (count * parts)

    timed(3)
    once = timed(3) * parts / 1e6
    repeats = max(5, min(repeats, int(seconds / once)))  # slow work is timed less often
    count = max(1, int(seconds / repeats / once))
    return sorted(timed(count) for _ in range(repeats))


def percentile(times: Sequence[float], share: float) -> float:
    return times[round(share * (len(times) - 1))] if share != 0.5 else statistics.median(times)


def device_line() -> dict[str, str]:
    """What the rows of a table need to be compared with others."""
    import triton

    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
    }


def append_rows(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """Append to a CSV file, with a header when it is new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)
