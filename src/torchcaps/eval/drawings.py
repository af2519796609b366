"""What a capsule holds, drawn by the decoder: reconstructions, and one dimension moved at a time (Fig. 4)."""

from __future__ import annotations

import torch
from einops import rearrange
from torch import Tensor

from torchcaps.errors import TorchcapsError
from torchcaps.eval.metrics import PRESENCE_THRESHOLD
from torchcaps.models import CapsuleModel, Model

__all__ = [
    "TWEAKS",
    "coupling_entropy",
    "dimension_grid",
    "draw",
    "draw_named",
    "draw_present",
    "drawing_model",
    "predict_classes",
    "tweak_dimensions",
]

TWEAKS = tuple(round(-0.25 + 0.05 * step, 2) for step in range(11))  # of the paper


def drawing_model(model: Model) -> CapsuleModel:
    """The model as one that can draw, or an error that says why it cannot."""
    if not isinstance(model, CapsuleModel):
        raise TorchcapsError(
            f"{type(model).__name__} has no capsules to draw from; this needs a capsule network with a decoder, "
            "such as one trained with the recipe mnist-paper"
        )
    if model.decoder is None:
        raise TorchcapsError("this network was made without a decoder (decoder='none'), so it cannot draw")
    return model


@torch.no_grad()
def predict_classes(model: CapsuleModel, images: Tensor) -> Tensor:
    """The class of the longest capsule, ``[B]``."""
    return model(images).lengths.argmax(dim=1)


@torch.no_grad()
def draw(model: CapsuleModel, images: Tensor, classes: Tensor | None = None) -> Tensor:
    """Pictures of what the capsules hold, ``[B, C, H, W]``.

    Shape:
        images: ``[B, C, H, W]``. classes: whose capsule to draw, ``[B]``, ``[B, K]`` or bool ``[B, J]``; left out, the
            longest.
    """
    out = model(images)
    return model.reconstruct(out.capsules, out.lengths.argmax(dim=1) if classes is None else classes)


@torch.no_grad()
def draw_named(model: CapsuleModel, images: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The classes of the ``count`` longest capsules ``[B, count]``, and their drawings laid over each other.

    Each capsule is drawn alone, as in training on pairs: ``[B, C, H, W]``, their sum up to 1.
    """
    out = model(images)
    named = out.lengths.topk(count, dim=1).indices
    drawn = torch.stack([model.reconstruct(out.capsules, one) for one in named.unbind(dim=1)])
    return named, drawn.sum(dim=0).clamp(max=1)


@torch.no_grad()
def draw_present(model: CapsuleModel, images: Tensor) -> tuple[Tensor, Tensor]:
    """Every class that is named, its capsule longer than 0.5: bool ``[B, J]``, maybe none; and their drawing.

    They are drawn together, as in training on pictures that show any number of classes: ``[B, C, H, W]``.
    """
    out = model(images)
    named = out.scores > PRESENCE_THRESHOLD
    return named, model.reconstruct(out.capsules, named)


def tweak_dimensions(capsules: Tensor, class_number: int, steps: tuple[float, ...] = TWEAKS) -> Tensor:
    """Copies of one example's capsules, in each of which one dimension of one class is moved by one step.

    Shape:
        capsules: ``[J, D]``. Returns ``[D, S, J, D]``: dimension that was moved, step, capsules.
    """
    J, D = capsules.shape
    if not 0 <= class_number < J:
        raise TorchcapsError(f"the model has the classes 0 … {J - 1}, not {class_number}")
    moved = capsules.expand(D, len(steps), J, D).clone()
    dimensions = torch.arange(D, device=capsules.device)
    moved[dimensions, :, class_number, dimensions] += capsules.new_tensor(steps)
    return moved


@torch.no_grad()
def dimension_grid(model: CapsuleModel, image: Tensor, class_number: int, steps: tuple[float, ...] = TWEAKS) -> Tensor:
    """Fig. 4: the capsule of one class, each dimension moved by each step, decoded.

    Shape:
        image: ``[C, H, W]``. Returns ``[D, S, C, H, W]``.
    """
    capsules = model(image.unsqueeze(0)).capsules[0]
    moved = tweak_dimensions(capsules, class_number, steps)
    rows = rearrange(moved, "d s j e -> (d s) j e")
    classes = torch.full((len(rows),), class_number, device=rows.device)
    return rearrange(model.reconstruct(rows, classes), "(d s) c h w -> d s c h w", s=len(steps))


@torch.no_grad()
def coupling_entropy(model: CapsuleModel, images: Tensor) -> Tensor:
    """Mean entropy of the coupling coefficients in nats, for each iteration and example: ``[R, B]``.

    ln J where each lower capsule divides itself evenly among the J classes, 0 where it sends all to one.
    """
    trace = model(images, return_trace=True).trace
    assert trace is not None
    return trace.entropy()
