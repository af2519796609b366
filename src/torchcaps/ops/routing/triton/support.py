"""Can the fused kernels take this input? The answer comes with its reason."""

from __future__ import annotations

import importlib.util
import os

import torch
from torch import Tensor

__all__ = ["LARGEST", "supports"]

LARGEST = {"J": 256, "D": 64, "P": 64}
OLDEST_CAPABILITY = (8, 0)  # the first with bfloat16 and tf32 matrix units
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
INSTALLED = importlib.util.find_spec("triton") is not None


def supports(u: Tensor, weight: Tensor | None = None) -> tuple[bool, str]:
    """Whether the fused kernels can route this input, and why or why not.

    Args:
        u: lower capsules ``[B, I, P]``.
        weight: ``[I, J, D, P]`` or ``[J, D, P]``; without it only the device and P are looked at.
    """
    if not INSTALLED:
        return False, "Triton is not installed"
    if u.device.type == "cpu":
        if os.environ.get("TRITON_INTERPRET") != "1":
            return False, "the input is on the CPU, where Triton runs only with TRITON_INTERPRET=1"
    elif u.device.type != "cuda":
        return False, f"Triton kernels run on CUDA devices, the input is on {u.device.type}"
    elif torch.version.hip is not None:
        return False, "the kernels are not tested on AMD GPUs"
    elif _capability(u.device.index or 0) < OLDEST_CAPABILITY:
        return False, f"the GPU has compute capability below {'.'.join(map(str, OLDEST_CAPABILITY))}"
    if u.dtype not in DTYPES:
        return False, f"{u.dtype} is not one of bfloat16, float16 and float32"
    sizes = {"P": u.shape[2]}
    if weight is not None:
        sizes |= {"J": weight.shape[-3], "D": weight.shape[-2]}
    for letter, size in sizes.items():
        if size > LARGEST[letter]:
            return False, f"{letter} = {size} is above {LARGEST[letter]}"
    return True, "the fastest on CUDA" if u.is_cuda else "interpreted on the CPU, for tests only"


def _capability(index: int) -> tuple[int, int]:
    return torch.cuda.get_device_capability(index)


# What torch.compiler.assume_constant_result does, without the second that importing the compiler takes.
_capability._dynamo_marked_constant = True  # type: ignore[attr-defined]
