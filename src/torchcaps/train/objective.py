"""Model and loss as one module: from a batch to the number to minimise. This is what is compiled and captured."""

from __future__ import annotations

from typing import NamedTuple

import torch
from einops import rearrange, repeat
from torch import Tensor, nn

from torchcaps import ops
from torchcaps.models import Model
from torchcaps.nn import CapsuleLoss

__all__ = ["Objective", "StepTerms", "is_wrong"]

PRESENCE = 0.5  # where a picture may show any number of classes


class StepTerms(NamedTuple):
    """What a step leaves behind: the number to minimise, its two terms (0 where there is none) and the errors."""

    total: Tensor
    margin: Tensor
    reconstruction: Tensor
    wrong: Tensor


class Objective(nn.Module):
    """Outputs, loss and errors of a batch.

    A capsule network is trained by margin and reconstruction, drawn from the capsule of the *true* class; with K
    things in a picture each is drawn on its own by the same decoder. Other networks are trained by the loss of their
    logits.

    Shape:
        images ``[B, C, H, W]``; labels ``[B]``, ``[B, K]`` or bool ``[B, J]``; targets: what to draw, the images
        themselves or the K single things ``[B, K, C, H, W]``.
    """

    def __init__(self, model: Model, precision: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.model = model
        self.loss: nn.Module = model.make_loss()  # type: ignore[operator]
        self.precision = precision

    def set_progress(self, progress: float) -> None:
        """Which share of the training is over, for a loss that changes with it."""
        if isinstance(self.loss, CapsuleLoss):
            self.loss.set_progress(progress)

    def forward(self, images: Tensor, labels: Tensor, targets: Tensor) -> StepTerms:
        device = images.device.type
        half = self.precision != torch.float32
        # No cache of cast weights: a captured graph must cast them anew in every replay.
        with torch.autocast(device, self.precision if half else None, enabled=half, cache_enabled=False):
            out = self.model(images)
            capsules = isinstance(self.loss, CapsuleLoss)
            drawn = self._draw(out.capsules, labels) if capsules and has_decoder(self.model) else None
        wrong = is_wrong(out.scores.detach(), labels).sum()
        truth = labels if labels.ndim == 1 or labels.dtype == torch.bool else ops.multi_hot(labels, out.scores.shape[1])
        if not capsules:
            if isinstance(self.loss, nn.BCEWithLogitsLoss) and truth.ndim == 1:
                truth = ops.multi_hot(truth, out.scores.shape[1])
            loss = self.loss(out.logits, truth if truth.ndim == 1 else truth.float())
            return StepTerms(loss, loss.detach(), torch.zeros_like(loss.detach()), wrong)
        terms = self.loss(out.lengths, truth, drawn, None if drawn is None else targets)
        drawing = torch.zeros_like(terms.margin) if terms.reconstruction is None else terms.reconstruction
        return StepTerms(terms.total, terms.margin.detach(), drawing.detach(), wrong)

    def _draw(self, capsules: Tensor, labels: Tensor) -> Tensor:
        if labels.ndim == 1 or labels.dtype == torch.bool:
            return self.model.reconstruct(capsules, labels)  # type: ignore[operator]
        K = labels.shape[1]
        several = repeat(capsules, "b j d -> (b k) j d", k=K)
        drawn: Tensor = self.model.reconstruct(several, labels.flatten())  # type: ignore[operator]
        return rearrange(drawn, "(b k) c h w -> b k c h w", k=K)


def has_decoder(model: nn.Module) -> bool:
    """Whether a network can draw what it saw."""
    return getattr(model, "decoder", None) is not None


def is_wrong(scores: Tensor, labels: Tensor) -> Tensor:
    """Which examples of a batch are wrong, bool ``[B]`` on its device; nothing waits for the device.

    One class ``[B]``: the highest score. K classes ``[B, K]``: the K highest, all of them right. Any number, bool
    ``[B, J]``: every score above one half.
    """
    if labels.dtype == torch.bool:
        return ((scores > PRESENCE) != labels).any(dim=1)
    if labels.ndim == 1:
        return scores.argmax(dim=1) != labels
    best = scores.topk(labels.shape[1], dim=1).indices.sort(dim=1).values
    return (best != labels.sort(dim=1).values).any(dim=1)
