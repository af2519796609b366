"""How much the two digits of a MultiMNIST pair overlap, measured on their bounding boxes."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from torchcaps.data.multimnist import MultiBatch

__all__ = ["BoxOverlap", "bounding_boxes", "frame_overlap", "overlap"]


@dataclass(frozen=True)
class BoxOverlap:
    """Area that two boxes share, as a fraction of four different things; each float32 ``[B]``.

    ``covered`` is the one that torchcaps prints where one number is wanted: the share of a digit's box that lies
    under the other digit's box, mean of the two digits. None of the four is the paper's 80 %; see ``frame_overlap``.
    """

    covered: Tensor
    over_smaller: Tensor
    over_larger: Tensor
    over_union: Tensor

    def means(self) -> dict[str, float]:
        """The mean of each definition over the batch."""
        return {field.name: float(getattr(self, field.name).mean()) for field in fields(self)}


def bounding_boxes(images: Tensor) -> Tensor:
    """Tight box around all pixels that are not black.

    Shape:
        images: ``[*, C, H, W]``. Output: int64 ``[*, 4]`` as top, left, bottom, right, the last two exclusive.
        A black picture has the empty box 0, 0, 0, 0.

    >>> image = torch.zeros(1, 1, 5, 6, dtype=torch.uint8)
    >>> image[0, 0, 1:3, 2:6] = 9
    >>> bounding_boxes(image).tolist()
    [[1, 2, 3, 6]]
    """
    ink = (images != 0).any(-3)  # [*, H, W]
    edges = []
    for marked in (ink.any(-1), ink.any(-2)):  # rows [*, H], columns [*, W]
        length = marked.shape[-1]
        found = marked.any(-1)
        first = marked.int().argmax(-1)  # the first of equal maxima
        last = length - marked.int().flip(-1).argmax(-1)
        edges.append((first * found, last * found))
    (top, bottom), (left, right) = edges
    return torch.stack((top, left, bottom, right), dim=-1)


def overlap(batch: MultiBatch) -> BoxOverlap:
    """Overlap of the two digits' tight boxes in each pair of a batch.

    >>> from torchcaps.data import sample_digits
    >>> from torchcaps.data.multimnist import MultiMNIST
    >>> pairs = MultiMNIST(sample_digits("train")).pairs(torch.arange(0, 1_000_000, 1000))
    >>> 0.5 < overlap(pairs).means()["covered"] < 0.9
    True
    """
    boxes = bounding_boxes(batch.singles)  # [B, 2, 4]
    corner, opposite = boxes[..., :2], boxes[..., 2:]
    area = (opposite - corner).prod(-1).float()  # [B, 2]
    shared = (opposite.amin(1) - corner.amax(1)).clamp(min=0).prod(-1).float()  # [B]
    smaller, larger = area.amin(1), area.amax(1)
    # A digit that was shifted out of sight has an empty box: it shares nothing, and 0 / 1 says so.
    return BoxOverlap(
        covered=(shared[:, None] / area.clamp(min=1)).mean(1),
        over_smaller=shared / smaller.clamp(min=1),
        over_larger=shared / larger.clamp(min=1),
        over_union=shared / (smaller + larger - shared).clamp(min=1),
    )


def frame_overlap(batch: MultiBatch, frame: tuple[int, int] = (28, 28)) -> Tensor:
    """Shared area of the two shifted pictures' frames, ink or not, over one frame's area: float32 ``[B]``.

    This is the measure under which the paper's "80 % on average" holds: two frames of 28×28, each shifted by up to
    4 pixels, share ((28 − 80/27) / 28)² = 79.96 % on average. With the paper's boxes of 20×20 it would be 72.6 %.
    """
    apart = (batch.shifts[:, 0] - batch.shifts[:, 1]).abs()  # [B, 2]
    sides = torch.tensor(frame, device=apart.device)
    return (sides - apart).clamp(min=0).prod(-1) / float(frame[0] * frame[1])
