"""How fast the data comes: MultiMNIST pairs and loader batches, made on the device that trains.

    PYTHONPATH=src python -m benchmarks.data --device cuda --mnist path/to/the/four/gz/files

Without ``--mnist`` the embedded digits are used. A timing is the median of several repeats, with the 20th and 80th
percentile; on a GPU both called step by step and replayed from a captured graph.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from torchcaps.data import TestSplit, TrainSplit, load, random, sample_digits
from torchcaps.data.affine_digits import AffineDigits, ink_extent
from torchcaps.data.augment import AUGMENTATIONS, Crop, build
from torchcaps.data.loader import Loader
from torchcaps.data.multimnist import MultiMNIST
from torchcaps.data.overlap import frame_overlap, overlap
from torchcaps.data.random import RandomStream

REPEATS = 15


@dataclass(frozen=True)
class Row:
    """One measured thing; ``value`` is the median where it is a time or a rate."""

    what: str
    value: float
    p20: float
    p80: float
    unit: str
    target: str = ""


def load_mnist(folder: Path | None) -> tuple[TrainSplit, TestSplit, str]:
    """Training and test digits, and which they are."""
    if folder is None:
        return sample_digits("train"), sample_digits("test"), "embedded digits, 1,000 + 500"
    source = load(f"idx:{folder}")
    assert source.test is not None
    return source.train, source.test, f"{folder.name}, {len(source.train):,} + {len(source.test):,}"


def seconds_per_call(work: Callable[[], object], device: torch.device) -> list[float]:
    """Sorted times of one call, each the mean of enough calls to fill about 40 ms."""

    def timed(calls: int) -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        for _ in range(calls):
            work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return (time.perf_counter() - start) / calls

    timed(3)
    calls = max(1, round(0.04 / timed(3)))
    return sorted(timed(calls) for _ in range(REPEATS))


def captured(work: Callable[[], object], device: torch.device) -> Callable[[], object]:
    """The same work as one CUDA graph."""
    stream = torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        work()
    torch.cuda.synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def rate_row(what: str, times: list[float], count: int, unit: str, target: str = "") -> Row:
    low, middle, high = (count / times[round(share * (len(times) - 1))] for share in (0.8, 0.5, 0.2))
    return Row(what, middle, low, high, unit, target)


def time_row(what: str, times: list[float], target: str = "") -> Row:
    low, middle, high = (1e3 * times[round(share * (len(times) - 1))] for share in (0.2, 0.5, 0.8))
    return Row(what, middle, low, high, "ms a step", target)


def ways(device: torch.device, work: Callable[[], object]) -> dict[str, Callable[[], object]]:
    """Called from Python, and on a GPU as a captured graph too."""
    return {"eager": work, "graph": captured(work, device)} if device.type == "cuda" else {"eager": work}


def multimnist_rows(train: TrainSplit, device: torch.device) -> list[Row]:
    rows = []
    target = "≥ 2,000,000 on an H200" if device.type == "cuda" else "≥ 20,000 on two cores"
    for variant in ("paper", "official"):
        multi = MultiMNIST(train, variant, device=device)
        for batch_size in (128, 1024, 8192):
            draws = RandomStream(0, "benchmark").integers(torch.arange(batch_size, device=device), len(multi))
            indices = draws.squeeze(-1)
            for way, work in ways(device, lambda multi=multi, indices=indices: multi.pairs(indices)).items():
                times = seconds_per_call(work, device)
                rows.append(
                    rate_row(f"MultiMNIST {variant}, batch {batch_size}, {way}", times, batch_size, "pairs/s", target)
                )
        rows += overlap_rows(multi, train)
        same, stride = 0, max(1, len(multi) // 10_000_000)
        for first in range(0, min(10_000_000, len(multi)), 500_000):
            labels = multi.labels(torch.arange(first, first + 500_000, device=device) * stride)
            same += int((labels[:, 0] == labels[:, 1]).sum())
        checked = min(10_000_000, len(multi))
        rows.append(Row(f"MultiMNIST {variant}, pairs of one class in {checked:,}", same, same, same, "pairs", "0"))
    return rows


def overlap_rows(multi: MultiMNIST, train: TrainSplit, count: int = 100_000) -> list[Row]:
    """Mean overlap of the two digits of pairs drawn over the whole range, by each definition; ink that is lost."""
    chosen = RandomStream(0, "overlap").integers(torch.arange(count, device=multi.device), len(multi)).squeeze(-1)
    ink = train.images.to(multi.device).sum((1, 2, 3))
    sums: dict[str, float] = {}
    for indices in chosen.split(10_000):
        batch = multi.pairs(indices)
        lost = 1 - batch.singles.sum((2, 3, 4)) / ink[multi.pictures(indices)]
        means = {f"overlap {name}": mean for name, mean in overlap(batch).means().items()}
        means["overlap frames of 28×28"] = float(frame_overlap(batch).mean())
        means["digits that lose ink"] = float((lost > 0).float().mean())
        means["ink lost"] = float(lost.mean())
        for name, mean in means.items():
            sums[name] = sums.get(name, 0.0) + 100 * mean * len(indices) / count
    return [Row(f"MultiMNIST {multi.variant}, {name}", mean, mean, mean, "%") for name, mean in sums.items()]


def loader_rows(train: TrainSplit, device: torch.device) -> list[Row]:
    rows = []
    step = torch.zeros((), dtype=torch.int64, device=device)
    chains: dict[str, list[dict[str, object]]] = {"no augmentation": [], "shift ±2": [{"name": "shift", "pixels": 2}]}
    chains |= {
        name: [{"name": name, **({"size": 24} if kind is Crop else {})}]
        for name, kind in AUGMENTATIONS.items()
        if name != "shift"
    }
    for name, chain in chains.items():
        loader = Loader(train, 128, device, augment=build(chain))
        for way, work in ways(device, lambda loader=loader: loader.step_batch(step)).items():
            times = seconds_per_call(work, device)
            named = f"Loader, batch 128, {name}, {way}"
            with_target = name == "shift ±2"
            rows.append(time_row(named, times, "< 0.05 on an H200" if with_target and way == "graph" else ""))
            rows.append(rate_row(named, times, 128, "images/s", "≥ 100,000 on two cores" if with_target else ""))
    if device.type == "cuda" and random.fused_hash is not None:
        fused, random.fused_hash = random.fused_hash, None
        loader = Loader(train, 128, device, augment=build(chains["shift ±2"]))
        for way, work in ways(device, lambda: loader.step_batch(step)).items():
            rows.append(time_row(f"Loader, batch 128, shift ±2, no Triton, {way}", seconds_per_call(work, device)))
        random.fused_hash = fused
    return rows


def affine_rows(test: TestSplit, device: torch.device) -> list[Row]:
    digits = AffineDigits(test, device=device)
    indices = torch.arange(0, 1024, device=device)
    times = seconds_per_call(lambda: digits.examples(indices), device)
    fitted, looked_at = 0, torch.arange(0, len(digits), max(1, len(digits) // 64_000), device=device)
    for chosen in looked_at.split(4_000):
        low, high = ink_extent(test.images.to(device)[chosen // digits.copies], digits.transforms(chosen)[0])
        fitted += int(((high - low).amax(1) > digits.size - 1 - 1e-9).sum())
    what = f"affnist-like, copies made smaller to fit, of {len(looked_at):,}"
    return [
        rate_row("affnist-like, batch 1024, eager", times, 1024, "pictures/s"),
        Row(what, fitted, fitted, fitted, "pictures"),
    ]


def hash_rows(device: torch.device) -> list[Row]:
    """Do this device and the CPU make the same bytes? 1 for yes."""
    digests = []
    for where in ("cpu", device):
        multi = MultiMNIST(sample_digits("train"), device=where)
        batch = multi.pairs(torch.arange(0, 4096, device=where) * 199)
        loader = Loader(sample_digits("train"), 128, where, augment=build([{"name": "shift"}]))
        picture = next(iter(loader)).images
        affine = AffineDigits(sample_digits("test"), device=where).examples(torch.arange(2048, device=where)).images
        parts = (batch.images, batch.labels, batch.singles, picture, affine)
        digests.append([hashlib.sha256(part.cpu().numpy().tobytes()).hexdigest() for part in parts])
    names = ("MultiMNIST images", "MultiMNIST labels", "MultiMNIST singles", "Loader + shift", "affnist-like")
    return [
        Row(f"{name}: same bytes as on the CPU", same, same, same, "1 = yes", "1")
        for name, same in zip(names, (float(a == b) for a, b in zip(*digests, strict=True)), strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--mnist", type=Path, help="folder with the four IDX files")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads (default 2)")
    parser.add_argument("--csv", type=Path, help="write the rows there too")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    train, test, digits = load_mnist(options.mnist)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {options.threads} threads"
    print(f"{name}; torch {torch.__version__}, Python {platform.python_version()}; {digits}")
    rows: list[Row] = []
    for measured in (
        lambda: hash_rows(device) if device.type != "cpu" else [],
        lambda: multimnist_rows(train, device),
        lambda: loader_rows(train, device),
        lambda: affine_rows(test, device),
    ):
        for row in measured():
            rows.append(row)
            digits_after_point = 4 if row.unit == "ms a step" else 2 if row.unit == "%" else 0
            figures = (f"{figure:,.{digits_after_point}f}" for figure in (row.value, row.p20, row.p80))
            print(f"{row.what:<62}" + "".join(f"{figure:>16}" for figure in figures) + f"  {row.unit:<11}{row.target}")
    if options.csv:
        options.csv.parent.mkdir(parents=True, exist_ok=True)
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*asdict(rows[0]), "device", "torch"], lineterminator="\n")
            writer.writeheader()
            writer.writerows({**asdict(row), "device": name, "torch": torch.__version__} for row in rows)


if __name__ == "__main__":
    main()
