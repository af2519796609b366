"""Can the convolution kernels take this input? The answer comes with its reason."""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.triton_support import runs_triton

__all__ = ["CHANNEL_STEP", "supports"]

CHANNEL_STEP = 64  # channels that one step of the matrix product takes
MOST_ELEMENTS = 2**31 - 1  # of one example or of the weight; places inside them are counted in 32 bits


def supports(x: Tensor, weight: Tensor, dtype: torch.dtype | None = None) -> tuple[bool, str]:
    """Whether the kernels can convolve this input, and why or why not.

    Padding, dilation and groups do not exist here.

    Args:
        x: ``[B, C, H, W]``.
        weight: ``[N, C, KH, KW]``.
        dtype: the precision of the product; that of ``x`` if not given.
    """
    able, reason = runs_triton(x.device)
    if not able:
        return False, reason
    # The interpreter cannot multiply bfloat16; on a GPU the library computes float32 in tf32 or exactly, as asked.
    dtypes = (torch.bfloat16, torch.float16) if x.is_cuda else (torch.float32,)
    dtype = dtype or x.dtype
    if dtype not in dtypes:
        return False, f"{dtype} is not {' or '.join(str(known).removeprefix('torch.') for known in dtypes)}"
    if x.ndim != 4 or weight.ndim != 4 or x.device != weight.device:
        return False, "x and weight must have four dimensions each and lie on one device"
    (_, C, H, W), (N, weight_channels, KH, KW) = x.shape, weight.shape
    if weight_channels != C:
        return False, f"the weight is for {weight_channels} channels, the input has {C}"
    if KH > H or KW > W:
        return False, f"a {KH}×{KW} kernel does not fit into {H}×{W}"
    if C % CHANNEL_STEP or N % CHANNEL_STEP or not C * N:
        return False, f"{C} → {N} channels are not multiples of {CHANNEL_STEP}"
    if max(H * W * max(C, N), N * KH * KW * C) > MOST_ELEMENTS:
        return False, "one example or the weight has 2³¹ elements or more"
    return True, reason
