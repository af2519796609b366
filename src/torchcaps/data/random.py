"""Random numbers as a function of a counter: the same bits on every device, whatever the batch size or the order.

A generator with a state gives number n only after n − 1 others. Here number n is computed directly, so that
"pair 41,000,007 of seed 3" or "the shift of the example at position 128·step + 5" is one definite value.

The generator is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014)
with a second step for the lane: ``mix(key + counter·γ + lane·δ)``, all modulo 2⁶⁴. Lane 0 of key s is the
published sequence of seed s, output n at counter n. γ and δ are odd, and δ/γ is such that for lanes below 2¹⁶ and
counters below 2⁴⁵ no two (counter, lane) meet.

Torch has no arithmetic on uint64; int64 wraps around in the same way, and a logical shift is an arithmetic one
with the sign bits masked away.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import torch
from torch import Tensor

from torchcaps.data._random_triton import fused_hash

__all__ = ["LANES", "RandomStream", "hash_counter"]

LANES = 1 << 16


MASK = (1 << 64) - 1


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


GAMMA = _signed(0x9E3779B97F4A7C15)
LANE_STEP = _signed(0xC2B2AE3D27D4EB4F)
MULTIPLIERS = (_signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB))


def _shift_right(state: Tensor, places: int) -> Tensor:
    return (state >> places) & ((1 << (64 - places)) - 1)


def _hash_plain(counter: Tensor, key: int, lanes: int) -> Tensor:
    if torch.compiler.is_compiling():
        # Inductor would take "lane · constant" for an index, whose 32 bits the constant does not fit.
        offsets = [_signed((key + lane * LANE_STEP) & MASK) for lane in range(lanes)]
        state = torch.stack([counter * GAMMA + offset for offset in offsets], dim=-1)
    else:
        starts = torch.arange(lanes, device=counter.device) * LANE_STEP + key
        state = torch.add(starts, counter.unsqueeze(-1), alpha=GAMMA)
    state = (state ^ _shift_right(state, 30)) * MULTIPLIERS[0]
    state = (state ^ _shift_right(state, 27)) * MULTIPLIERS[1]
    return state ^ _shift_right(state, 31)


def hash_counter(counter: Tensor, key: int, lanes: int = 1) -> Tensor:
    """64 random bits for each counter and lane.

    On a GPU one fused kernel does it where Triton is there; the bits are the same either way.

    Shape:
        counter: int64, any shape. Output: int64 ``[*counter.shape, lanes]``, all 64 bits used.

    >>> hash_counter(torch.tensor([1, 2]), key=1234567).flatten().tolist()
    [6457827717110365317, 3203168211198807973]
    """
    if not 1 <= lanes <= LANES:
        raise ValueError(f"lanes must be 1 to {LANES}, got {lanes}; beyond that two counters could meet")
    key = _signed(key & MASK)
    if counter.is_cuda and fused_hash is not None and not torch.compiler.is_compiling():
        return fused_hash(counter, key, lanes, GAMMA, LANE_STEP, *MULTIPLIERS)
    return _hash_plain(counter, key, lanes)


@dataclass(frozen=True)
class RandomStream:
    """All random numbers of one purpose: give it a seed and a name, ask it with counters.

    Streams of different seed or name are independent; within one, number (counter, lane) never changes.

    >>> shifts = RandomStream(seed=0, name="shift")
    >>> shifts.integers(torch.arange(3), 5, lanes=2).shape
    torch.Size([3, 2])
    """

    seed: int
    name: str
    key: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        digest = hashlib.blake2b(f"{self.seed}/{self.name}".encode(), digest_size=8).digest()
        object.__setattr__(self, "key", int.from_bytes(digest, "little"))

    def bits(self, counter: Tensor, lanes: int = 1) -> Tensor:
        """64 random bits as int64 ``[*counter.shape, lanes]``."""
        return hash_counter(counter, self.key, lanes)

    def integers(self, counter: Tensor, count: int | Tensor, lanes: int = 1) -> Tensor:
        """Whole numbers 0 … count − 1 as int64 ``[*counter.shape, lanes]``.

        ``count`` is below 2³¹ and may be a tensor that broadcasts. The upper 32 bits u give ⌊u·count / 2³²⌋, so a
        number is at most count / 2³² more or less likely than it should be, relatively: 1.4·10⁻⁵ for 60,000.
        """
        upper = (self.bits(counter, lanes) >> 32) & 0xFFFFFFFF
        return (upper * count) >> 32

    def uniform(self, counter: Tensor, lanes: int = 1, low: float = 0.0, high: float = 1.0) -> Tensor:
        """float32 in [low, high) as ``[*counter.shape, lanes]``; in [0, 1) a multiple of 2⁻²⁴, so exact everywhere."""
        unit = ((self.bits(counter, lanes) >> 40) & 0xFFFFFF).to(torch.float32) * 2.0**-24
        return unit if (low, high) == (0.0, 1.0) else unit * (high - low) + low
