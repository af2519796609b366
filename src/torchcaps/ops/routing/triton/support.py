"""Can the fused kernels take this input? The answer comes with its reason."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.triton_support import runs_triton

__all__ = ["LARGEST", "supports"]

LARGEST = {"J": 256, "D": 64, "P": 64}
DTYPES = (torch.bfloat16, torch.float16, torch.float32)


def supports(u: Tensor, weight: Tensor | None = None) -> tuple[bool, str]:
    """Whether the fused kernels can route this input, and why or why not.

    Args:
        u: lower capsules ``[B, I, P]``.
        weight: ``[I, J, D, P]`` or ``[J, D, P]``; without it only the device and P are looked at.
    """
    able, reason = runs_triton(u.device)
    if not able:
        return False, reason
    if u.dtype not in DTYPES:
        return False, f"{u.dtype} is not one of bfloat16, float16 and float32"
    sizes = {"P": u.shape[2]}
    if weight is not None:
        sizes |= {"J": weight.shape[-3], "D": weight.shape[-2]}
    for letter, size in sizes.items():
        if size > LARGEST[letter]:
            return False, f"{letter} = {size} is above {LARGEST[letter]}"
    return True, reason
