"""Search for the tiles of the primary capsules' convolution (9×9, stride 2, 256 → 256 channels, bf16), beside cuDNN.

    PYTHONPATH=src python -m benchmarks.strided_convolution --csv strided_convolution.csv

Each row is one tile ``(rows, columns, warps, stages)``, for the forward pass with the number of splits behind it. The
line of each batch size names first what ``torchcaps.ops.convolution.tiles`` takes by its rules. A tile whose result is
not cuDNN's is reported and left out.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.gpu_timing import append_rows, capture, device_line, microseconds, percentile
from torchcaps.ops.convolution.launch import data_gradient, forward
from torchcaps.ops.convolution.tiles import Processor, Tile, choose_splits, forward_tile, gradient_tile

SIZE, KERNEL, STRIDE, CHANNELS = 20, 9, 2, 256
POSITIONS = ((SIZE - KERNEL) // STRIDE + 1) ** 2
STEPS = KERNEL**2 * CHANNELS // 64
TILES = [Tile(128, 256, 8), Tile(128, 128, 4), Tile(64, 256, 4)]
SMALL_TILES = [Tile(rows, columns, 4) for rows in (16, 32, 64) for columns in (128, 256)]
SPLITS = (1, 2, 3, 4, 5, 7)
MANY_SPLITS = (3, 8, 16, 32, 64)

Way = tuple[Tile, int]  # the splits are 0 for the data gradient, which has none


def ways(what: str, B: int) -> list[Way]:
    """What is worth trying for this batch; the library's own choice is always among it."""
    if what == "gradient":
        tries = [(tile, 0) for tile in (TILES if B > 64 else SMALL_TILES)]
    else:
        rows = POSITIONS * B
        tiles = TILES if rows > 64 else [tile for tile in SMALL_TILES if tile.rows == 64]
        # Few tiles leave most of the chip idle unless each is split many times.
        tries = [(tile, splits) for tile in tiles for splits in (SPLITS if rows > 2048 else MANY_SPLITS)]
    return list(dict.fromkeys([chosen(what, B), *tries]))


def name_of(way: Way) -> str:
    tile, splits = way
    return str((tile.rows, tile.columns, tile.warps, tile.stages, *([splits] if splits else [])))


def chosen(what: str, B: int) -> Way:
    """What the library takes."""
    processor = Processor.of(torch.device("cuda"))
    if what == "gradient":
        return gradient_tile(B, CHANNELS, processor), 0
    tile = forward_tile(POSITIONS * B, CHANNELS, processor)
    tiles = -(-POSITIONS * B // tile.rows) * (CHANNELS // tile.columns)
    return tile, choose_splits(tiles, STEPS, processor)


def channels_last(*shape: int) -> Tensor:
    return torch.randn(shape, device="cuda").bfloat16().to(memory_format=torch.channels_last)


def median_time(function: Callable[[], object]) -> float:
    return percentile(microseconds(capture([function] * 2), 2, repeats=7, seconds=0.03), 0.5)


def measure(B: int) -> Iterator[dict[str, object]]:
    """Rows of the table for one batch size."""
    x, weight = channels_last(B, CHANNELS, SIZE, SIZE), 0.02 * channels_last(CHANNELS, CHANNELS, KERNEL, KERNEL)
    maps = torch.conv2d(x, weight, None, STRIDE)
    grad = channels_last(*maps.shape)
    flags = ([STRIDE] * 2, [0, 0], [1, 1], False, [0, 0], 1, [True, False, False])
    cudnn: dict[str, Callable[[], Tensor]] = {
        "forward": lambda: torch.conv2d(x, weight, None, STRIDE),
        "gradient": lambda: torch.ops.aten.convolution_backward(grad, x, weight, None, *flags)[0],
    }
    own: dict[str, Callable[[Tile, int], Tensor]] = {
        "forward": lambda tile, splits: forward(x, weight, STRIDE, tile, splits),
        "gradient": lambda tile, splits: data_gradient(grad, weight, STRIDE, SIZE, SIZE, tile),
    }
    for what, library in cudnn.items():
        expected = library().float()
        yield {"B": B, "what": what, "tile": "cuDNN", "µs": round(median_time(library), 1)}
        for way in ways(what, B):
            name = name_of(way)
            try:
                error = float((own[what](*way).float() - expected).norm() / expected.norm())
            except Exception as refusal:  # a tile may need more shared memory than there is
                print(f"B {B} {what} {name}: {repr(refusal)[:200]}")
                continue
            if not error < 5e-3:  # both round to bf16 once
                print(f"B {B} {what} {name} is wrong: {error:.1e}")
                continue
            yield {"B": B, "what": what, "tile": name, "µs": round(median_time(functools.partial(own[what], *way)), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 128, 256, 512])
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    for B in options.batches:
        rows = list(measure(B))
        if options.csv:
            append_rows(options.csv, [{**row, **device_line()} for row in rows])
        for what in ("forward", "gradient"):
            times = {str(row["tile"]): row["µs"] for row in rows if row["what"] == what}
            library, taken = times.pop("cuDNN"), times.pop(name_of(chosen(what, B)), "failed")
            others = ", ".join(f"{tile} {time}" for tile, time in times.items())
            print(
                f"B {B} {what}: cuDNN {library}; taken {name_of(chosen(what, B))} {taken}; others {others}", flush=True
            )


if __name__ == "__main__":
    main()
