"""MultiMNIST: two overlapping digits of different classes in one picture, made on the device, never stored.

Pair k of a seed is one definite pair: base digit ``k // 1000``, its partner and both places follow from the seed
and k alone, by integer arithmetic, so that CPU and GPU make the same bytes. ``docs/multimnist.md`` has the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from torchcaps import ops
from torchcaps.data.random import RandomStream
from torchcaps.data.source import Split
from torchcaps.data.window import cut_windows, pad_pictures
from torchcaps.errors import DataError

__all__ = ["MultiBatch", "MultiMNIST", "PairPlan"]


@dataclass(frozen=True)
class MultiBatch:
    """Pictures of two digits, the digits' classes, and each digit alone at its place.

    Shape:
        images: ``[B, C, H, W]``; labels: int64 ``[B, 2]``, base digit first; singles: ``[B, 2, C, H, W]``;
        shifts: int64 ``[B, 2, 2]``, pixels (down, right) from the middle of the canvas.
        Pictures are uint8 0 … 255, or floats 0 … 1 where a loader was asked for them.
    """

    images: Tensor
    labels: Tensor
    singles: Tensor
    shifts: Tensor

    def multi_hot(self, num_classes: int = 10) -> Tensor:
        """Both classes as float32 ``[B, num_classes]`` with two ones in each row, the target of the margin loss."""
        return ops.multi_hot(self.labels, num_classes)


@dataclass(frozen=True)
class PairPlan:
    """What pair k is, before any picture is touched.

    Shape:
        pictures: int64 ``[B, 2]``, rows of the split; shifts: int64 ``[B, 2, 2]``, pixels (down, right).
    """

    pictures: Tensor
    shifts: Tensor


@dataclass(frozen=True)
class _Variant:
    pad: int
    shift: int
    base_shift_once: bool


VARIANTS = {
    "paper": _Variant(pad=4, shift=4, base_shift_once=False),
    "official": _Variant(pad=4, shift=6, base_shift_once=True),
}


class MultiMNIST:
    """All pairs of two digits of different classes of one split, as a sequence that is computed when asked for.

    >>> from torchcaps.data import sample_digits
    >>> multi = MultiMNIST(sample_digits("train"))
    >>> len(multi), multi.pairs(torch.tensor([0, 999_999])).images.shape
    (1000000, torch.Size([2, 1, 36, 36]))
    """

    def __init__(
        self,
        split: Split,
        variant: Literal["paper", "official"] = "paper",
        seed: int = 0,
        device: torch.device | str = "cpu",
        pairs_per_digit: int = 1000,
    ) -> None:
        if variant not in VARIANTS:
            raise DataError(f"MultiMNIST has the variants {sorted(VARIANTS)}, not {variant!r}")
        if split.labels.ndim != 1 or len(torch.unique(split.labels)) < 2:
            raise DataError("MultiMNIST needs one class for each picture and at least two classes in the split")
        self.variant = variant
        self.seed = seed
        self.split_type = type(split)
        self.pairs_per_digit = pairs_per_digit
        self.device = torch.device(device)
        self._rule = VARIANTS[variant]
        height, width = split.images.shape[-2:]
        self.size = (height + 2 * self._rule.pad, width + 2 * self._rule.pad)

        # A window of the canvas' size anywhere in the padded picture is that picture shifted on the canvas.
        self._padded = pad_pictures(split.images.to(self.device), self._rule.pad + self._rule.shift)
        self._labels = split.labels.to(self.device)
        self._by_class = torch.argsort(self._labels, stable=True)
        class_sizes = torch.bincount(self._labels)
        self._class_size = class_sizes[self._labels]  # [N], how many pictures share this one's class
        self._class_start = (class_sizes.cumsum(0) - class_sizes)[self._labels]  # [N], where they start in _by_class
        self.num_classes = len(class_sizes)

        self._partner_random = RandomStream(seed, f"multimnist/{variant}/partner")
        self._shift_random = RandomStream(seed, f"multimnist/{variant}/shift")
        self._base_shift_random = RandomStream(seed, f"multimnist/{variant}/base-shift")

    def __len__(self) -> int:
        return len(self._labels) * self.pairs_per_digit

    @property
    def num_digits(self) -> int:
        """How many base digits there are: the pictures of the split."""
        return len(self._labels)

    def pictures(self, indices: Tensor) -> Tensor:
        """Which two pictures of the split each pair shows: int64 ``[B]`` to int64 ``[B, 2]``, base digit first."""
        base = indices // self.pairs_per_digit
        # The partner is drawn from the other classes only: a number below their count, which jumps over this class.
        own_size = self._class_size[base]
        draw = self._partner_random.integers(indices, (self.num_digits - own_size).unsqueeze(-1)).squeeze(-1)
        place = draw + own_size * (draw >= self._class_start[base])
        return torch.stack((base, self._by_class[place]), dim=1)

    def plan(self, indices: Tensor) -> PairPlan:
        """Which two pictures, and where; ``indices`` is int64 ``[B]``, each below ``len(self)``."""
        pictures = self.pictures(indices)
        steps = 2 * self._rule.shift + 1
        if self._rule.base_shift_once:
            base_shift = self._base_shift_random.integers(pictures[:, 0], steps, lanes=2)
            partner_shift = self._shift_random.integers(indices, steps, lanes=2)
            shifts = torch.stack((base_shift, partner_shift), dim=1)
        else:
            shifts = self._shift_random.integers(indices, steps, lanes=4).unflatten(-1, (2, 2))
        return PairPlan(pictures, shifts - self._rule.shift)

    def labels(self, indices: Tensor) -> Tensor:
        """Both classes, int64 ``[B, 2]``, without making the pictures."""
        return self._labels[self.pictures(indices)]

    def pairs(self, indices: Tensor) -> MultiBatch:
        """Make the pairs of these indices; nothing waits for the device.

        Shape:
            indices: int64 ``[B]`` on the device, 0 … ``len(self)`` − 1. Pictures come as uint8.
        """
        plan = self.plan(indices)
        top, left = (self._rule.shift - plan.shifts).unbind(-1)  # [B, 2] each
        singles = cut_windows(self._padded, plan.pictures, top, left, self.size)  # [B, 2, C, H, W]
        base, partner = singles.unbind(1)
        images = base + torch.minimum(partner, 255 - base)  # a sum that stops at 255, without leaving uint8
        return MultiBatch(images, self._labels[plan.pictures], singles, plan.shifts)

    def __getitem__(self, index: int) -> MultiBatch:
        """Pair ``index`` as a batch of one."""
        if not 0 <= index < len(self):
            raise IndexError(f"pair {index} of {len(self)}; indices start at 0")
        return self.pairs(torch.tensor([index], device=self.device))

    def batches(self, batch_size: int, start: int = 0, stop: int | None = None) -> Iterator[MultiBatch]:
        """Pairs ``start`` to ``stop`` (default: all) in order, for measuring; the last batch may be shorter."""
        end = len(self) if stop is None else min(stop, len(self))
        for first in range(start, end, batch_size):
            yield self.pairs(torch.arange(first, min(first + batch_size, end), device=self.device))
