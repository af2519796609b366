"""How the work is cut: examples by children for one program, and how many programs add into slots of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Tile", "Tiles", "choose_tiles", "next_power_of_two", "slots_for"]

PROGRAMS = 1056
"""Enough to give every multiprocessor of the largest chips several, few enough that the slots stay small."""


@dataclass(frozen=True)
class Tile:
    """One kernel's tile: ``examples`` rows, ``columns`` = children × their padded dimensions."""

    examples: int
    columns: int
    warps: int
    stages: int = 2


@dataclass(frozen=True)
class Tiles:
    """The tiles of the four kernels that go over the children."""

    normaliser: Tile
    weighted_sum: Tile
    child_gradient: Tile
    weight_gradient: Tile


HALF = Tiles(Tile(64, 64, 4, 3), Tile(64, 64, 4, 3), Tile(32, 64, 4, 3), Tile(64, 128, 4, 3))
FULL = Tiles(Tile(32, 64, 4), Tile(32, 64, 4), Tile(32, 64, 4), Tile(32, 64, 4))
"""``ieee`` products run on the plain units, whose operands need more registers."""


def choose_tiles(B: int, D: int, exact: bool) -> Tiles:
    """Measured choices; a small batch takes fewer rows, since rows beyond the batch are computed in vain."""
    tiles = FULL if exact else HALF
    rows, columns = max(16, next_power_of_two(B)), 128
    if D > 16:  # the parents' vectors take the room
        rows, columns = min(rows, 32), 64
    parts = (
        replace(tile, examples=min(tile.examples, rows), columns=min(tile.columns, columns))
        for tile in (tiles.normaliser, tiles.weighted_sum, tiles.child_gradient, tiles.weight_gradient)
    )
    return Tiles(*parts)


def slots_for(tiles: int, others: int, most: int) -> tuple[int, int]:
    """Slots and tiles per slot, so that ``slots × others`` programs fill the chip evenly.

    Args:
        tiles: how many tiles the children make.
        others: how many programs there are for each slot.
        most: upper bound on the slots, since each costs memory for one more partial sum.
    """
    wanted = max(1, min(tiles, most, -(-PROGRAMS // others)))
    per_slot = -(-tiles // wanted)
    return -(-tiles // per_slot), per_slot


def next_power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
