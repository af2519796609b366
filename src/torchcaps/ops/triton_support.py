"""Whether Triton's kernels can run on a device at all; what each op asks for besides stands with the op."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from typing import Any

import torch

__all__ = ["on_device", "runs_triton"]

OLDEST_CAPABILITY = (8, 0)  # the first with bfloat16 and tf32 matrix units
INSTALLED = importlib.util.find_spec("triton") is not None


def runs_triton(device: torch.device) -> tuple[bool, str]:
    """Whether kernels run on this device, and why or why not."""
    if not INSTALLED:
        return False, "Triton is not installed"
    if device.type == "cpu":
        if os.environ.get("TRITON_INTERPRET") != "1":
            return False, "the input is on the CPU, where Triton runs only with TRITON_INTERPRET=1"
        return True, "interpreted on the CPU, for tests only"
    if device.type != "cuda":
        return False, f"Triton kernels run on CUDA devices, the input is on {device.type}"
    if torch.version.hip is not None:
        return False, "the kernels are not tested on AMD GPUs"
    if _capability(device.index or 0) < OLDEST_CAPABILITY:
        return False, f"the GPU has compute capability below {'.'.join(map(str, OLDEST_CAPABILITY))}"
    return True, "the fastest on CUDA"


def _capability(index: int) -> tuple[int, int]:
    return torch.cuda.get_device_capability(index)


# What torch.compiler.assume_constant_result does, without the second that importing the compiler takes.
_capability._dynamo_marked_constant = True  # type: ignore[attr-defined]


def on_device(device: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Triton launches on the current device, which need not be the tensor's."""
    return torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext()
