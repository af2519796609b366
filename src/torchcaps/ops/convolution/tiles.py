"""How the work is cut, by rules that give the fastest of the tiles measured on an H200.

The measured times are in ``records/gpu-routing/strided_convolution.csv``; ``python -m benchmarks.strided_convolution``
measures them again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["Processor", "Tile", "choose_splits", "forward_tile", "gradient_tile"]

WIDEST_NEEDS = 3 * (128 + 256) * 64 * 2  # bytes of shared memory: three stages of both operands
SPLITS = (1, 2, 3, 5, 8, 16, 32, 64)
WAVE_OVERHEAD = 4  # to start and end a program, in steps of its loop
SPLIT_OVERHEAD = 12  # to write and to add one more partial sum of every tile, in steps of one program


@dataclass(frozen=True)
class Tile:
    """What one program computes: ``rows`` positions or examples × ``columns`` channels."""

    rows: int
    columns: int
    warps: int
    stages: int = 3


@dataclass(frozen=True)
class Processor:
    """What the choice depends on; the default is an H200, which also stands in where there is no GPU."""

    multiprocessors: int = 132
    shared_memory: int = 227 * 1024

    @classmethod
    def of(cls, device: torch.device) -> Processor:
        if device.type != "cuda":
            return cls()
        facts = torch.cuda.get_device_properties(device)
        shared = getattr(facts, "shared_memory_per_block_optin", 0)  # unknown to some versions of torch
        return cls(facts.multi_processor_count, shared)


def forward_tile(M: int, N: int, processor: Processor) -> Tile:
    """Rows are the ``M`` positions of all examples, columns the ``N`` channels that come out."""
    return _tile(64 if M <= 64 else 128, N, processor)


def gradient_tile(B: int, C: int, processor: Processor) -> Tile:
    """Rows are examples: a small batch takes fewer, since rows beyond it are computed in vain."""
    rows = next((rows for rows in (16, 32, 64) if rows >= B), 128)
    return _tile(rows, C, processor)


def _tile(rows: int, channels: int, processor: Processor) -> Tile:
    widths = (256, 128, 64) if processor.shared_memory >= WIDEST_NEEDS else (128, 64)
    columns = next(width for width in widths if channels % width == 0)
    return Tile(rows, columns, warps=8 if rows * columns > 128 * 128 else 4)


def choose_splits(tiles: int, steps: int, processor: Processor) -> int:
    """Programs that share the sum of one tile, so that the last wave of programs leaves few multiprocessors idle.

    Args:
        tiles: of the result.
        steps: of the sum over taps and channels.
    """

    def cost(splits: int) -> float:
        waves = -(-tiles * splits // processor.multiprocessors)
        return waves * (steps / splits + WAVE_OVERHEAD) + splits * SPLIT_OVERHEAD * tiles / processor.multiprocessors

    return min((splits for splits in SPLITS if splits <= steps), key=cost)
