"""The counter hash of ``random.py`` in one GPU kernel; a dozen small ones would cost more than a batch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["fused_hash"]

fused_hash: Callable[[Tensor, int, int, int, int, int, int], Tensor] | None = None

try:
    import triton
    import triton.language as tl
except ImportError:  # a machine without a GPU has no Triton; the plain version gives the same bits
    pass
else:
    BLOCK = 256

    @triton.jit(do_not_specialize=["key", "total"])  # type: ignore[untyped-decorator, unused-ignore]
    def _hash_kernel(  # type: ignore[no-untyped-def]
        counter,
        output,
        key,
        total,
        lanes: tl.constexpr,
        gamma: tl.constexpr,
        lane_step: tl.constexpr,
        first_multiplier: tl.constexpr,
        second_multiplier: tl.constexpr,
        block: tl.constexpr,
    ):
        place = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
        inside = place < total
        count = tl.load(counter + place // lanes, mask=inside, other=0)
        state = count * gamma + (place % lanes) * lane_step + key
        state = (state ^ ((state >> 30) & 0x3FFFFFFFF)) * first_multiplier
        state = (state ^ ((state >> 27) & 0x1FFFFFFFFF)) * second_multiplier
        state = state ^ ((state >> 31) & 0x1FFFFFFFF)
        tl.store(output + place, state, mask=inside)

    def _fused_hash(
        counter: Tensor,
        key: int,
        lanes: int,
        gamma: int,
        lane_step: int,
        first_multiplier: int,
        second_multiplier: int,
    ) -> Tensor:
        output = torch.empty((*counter.shape, lanes), dtype=torch.int64, device=counter.device)
        total = output.numel()
        if total == 0:
            return output
        with torch.cuda.device_of(counter):
            _hash_kernel[(triton.cdiv(total, BLOCK),)](
                counter.contiguous(),
                output,
                key,
                total,
                lanes,
                gamma,
                lane_step,
                first_multiplier,
                second_multiplier,
                block=BLOCK,
            )
        return output

    fused_hash = _fused_hash
