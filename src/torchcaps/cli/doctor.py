"""``torchcaps doctor``: what this machine can do, and what is missing."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import DataDir, print_table, say

__all__ = ["Finding", "look", "register"]

EXTRAS = {  # extra: modules it brings, what they are for
    "figures": (("matplotlib",), "figures, tweak, reconstruct, report"),
    "images": (("PIL",), "reading and writing pictures"),
    "onnx": (("onnx", "onnxscript", "onnxruntime"), "export to ONNX"),
    "tensorboard": (("tensorboard",), "TensorBoard events of a training"),
    "studio": (("fastapi", "uvicorn", "PIL"), "the studio in the browser"),
    "keras": (("keras",), "the capsule layer for Keras"),
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``state`` is ok, missing (something optional is not there) or note."""

    subject: str
    state: str
    text: str


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what this machine can do: Python, PyTorch, processor, GPU, fused kernels, optional parts, data sets.

    **Examples**

        torchcaps doctor

        torchcaps doctor --json
    """
    findings = list(look(data_dir))
    if as_json:
        say(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    marks = {"ok": Text("✓", "green"), "missing": Text("–", "yellow"), "note": Text(" ")}
    for finding in findings:
        table.add_row(marks[finding.state], finding.subject, finding.text)
    print_table(table)


def look(data_dir: Path | None = None) -> Iterator[Finding]:
    """Everything that is looked at, in the order in which it is shown."""
    import torch

    from torchcaps._version import __version__

    yield Finding("torchcaps", "ok", __version__)
    yield Finding("Python", "ok", f"{platform.python_version()} on {platform.platform()}")
    yield Finding("PyTorch", "ok", torch.__version__)
    yield from _processor()
    yield from _gpu()
    yield _compiler()
    for extra, (modules, purpose) in EXTRAS.items():
        absent = [module for module in modules if importlib.util.find_spec(module) is None]
        text = f'{purpose}: install with pip install "torchcaps[{extra}]"' if absent else purpose
        yield Finding(extra, "missing" if absent else "ok", text)
    yield from _data(data_dir)


def _processor() -> Iterator[Finding]:
    import torch

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    level = torch.backends.cpu.get_cpu_capability()
    yield Finding("CPU", "ok", f"{usable} cores, {torch.get_num_threads()} threads, {level}")
    flags = _processor_flags()
    fast = sorted(flags & {"amx_bf16", "avx512_bf16"})
    text = f"in hardware ({', '.join(fast)})" if fast else "works, but not in hardware: fp32 is faster on this CPU"
    yield Finding("bf16 on CPU", "ok" if fast else "note", text)


def _processor_flags() -> set[str]:
    """Features that the kernel reports; empty where it reports none."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    lines = [line for line in text.splitlines() if line.startswith(("flags", "Features"))]
    return set(lines[0].partition(":")[2].split()) if lines else set()


def _gpu() -> Iterator[Finding]:
    import torch

    if not torch.cuda.is_available():
        yield Finding("CUDA", "missing", "no CUDA device; everything runs on the CPU, full-size training takes hours")
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        text = f"{facts.name}, {facts.total_memory / 2**30:.0f} GiB, capability {facts.major}.{facts.minor}"
        yield Finding(f"CUDA {index}", "ok", text)
    if importlib.util.find_spec("triton") is None:
        yield Finding("Triton", "missing", "not installed; the fused routing on a GPU needs it")
    else:
        yield Finding("Triton", "ok", "installed; fused routing on CUDA devices")
    yield Finding("routing", "ok", _routing())


def _routing() -> str:
    import torch

    from torchcaps import explain_backend

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return explain_backend(torch.zeros(1, 8, 8, device=device))


def _compiler() -> Finding:
    found = next(
        (name for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++") if name and shutil.which(name)), None
    )
    if found is None:
        return Finding("C++ compiler", "missing", "none found; torch.compile on the CPU needs one, such as g++")
    return Finding("C++ compiler", "ok", f"{shutil.which(found)}, for torch.compile")


def _data(data_dir: Path | None) -> Iterator[Finding]:
    from torchcaps.data.catalog import list_sources
    from torchcaps.data.locate import locate

    embedded = [f"{info.name} (embedded)" for info in list_sources() if not info.file_sets]
    infos = [info for info in list_sources() if info.file_sets]
    here = [info.name for info in infos if locate(info, data_dir)]
    absent = [info.name for info in infos if info.name not in here]
    yield Finding("data here", "ok", ", ".join([*embedded, *here]))
    if absent:
        yield Finding("data not here", "note", f"{', '.join(absent)}; get one with torchcaps data fetch NAME")
