"""What the studio asks of a network, each as tensors ready to be sent."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps import ops
from torchcaps.data.window import to_unit_float
from torchcaps.eval.metrics import predicted_classes
from torchcaps.studio.affine import Kind, slider_values, transform
from torchcaps.studio.example_sets import ExampleSet
from torchcaps.studio.network import Network
from torchcaps.studio.refusal import RefusalError

__all__ = ["Survey", "affine", "checked_images", "decode", "decoder_weights", "forward", "survey", "trace", "votes"]

Tensors = dict[str, Tensor]

MOST_IMAGES = 64
MOST_SURVEYED = 2000
SLACK = 1e-3  # rounding in the page may leave 0…1 by a hair


def checked_images(network: Network, tensors: Tensors, most: int = MOST_IMAGES) -> Tensor:
    """The pictures of a request, float32 ``[B, C, H, W]`` in 0…1, or a refusal.

    Either ``images`` ``[B, C, H, W]`` or ``image`` ``[C, H, W]``; uint8 0…255 is taken too.
    """
    images = tensors["image"].unsqueeze(0) if "image" in tensors else tensors.get("images")
    C, H, W = network.model.image_shape
    if images is None:
        raise RefusalError(f"send a tensor named images [B, {C}, {H}, {W}] or image [{C}, {H}, {W}]")
    if images.dtype == torch.int64 or images.ndim != 4 or tuple(images.shape[1:]) != (C, H, W):
        raise RefusalError(
            f"this network takes pictures [B, {C}, {H}, {W}] as F32 in 0…1 or U8, got {str(images.dtype)[6:]} "
            f"{list(images.shape)}"
        )
    if not 1 <= len(images) <= most:
        raise RefusalError(f"send 1 to {most} pictures at once, got {len(images)}")
    images = to_unit_float(images)
    if bool((images < -SLACK).any()) or bool((images > 1 + SLACK).any()):
        raise RefusalError(f"pixels must lie in 0…1, got {float(images.min()):.4g} to {float(images.max()):.4g}")
    return images.clamp(0, 1)


def forward(network: Network, images: Tensor) -> Tensors:
    """Class capsules, their scores and what the best one draws; for another network its probabilities."""
    out = network.model(network.prepared(images))
    if not network.has_capsules:
        return {"probabilities": out.scores.float()}
    answer = {"lengths": out.lengths, "capsules": out.capsules}
    if network.capsule_model.decoder is not None:
        answer["reconstruction"] = network.capsule_model.reconstruct(out.capsules, out.lengths.argmax(dim=1))
    return answer


def decode(network: Network, capsules: Tensor) -> Tensors:
    """Pictures of capsules ``[B, J, D]`` that are masked already."""
    model = network.drawing
    J, D = model.num_classes, network.capsule_dim
    if not capsules.is_floating_point() or capsules.ndim != 3 or tuple(capsules.shape[1:]) != (J, D):
        raise RefusalError(f"send a tensor named capsules [B, {J}, {D}] as F32, got {list(capsules.shape)}")
    if not 1 <= len(capsules) <= 4 * MOST_IMAGES:
        raise RefusalError(f"send 1 to {4 * MOST_IMAGES} sets of capsules at once, got {len(capsules)}")
    everything = torch.ones(capsules.shape[:2], dtype=torch.bool)
    return {"pictures": model.reconstruct(capsules.float(), everything)}


def decoder_weights(network: Network, half: bool) -> Tensors:
    """``layer0.weight`` ``[out, in]``, ``layer0.bias`` and so on."""
    weights = {}
    for number, layer in enumerate(network.decoder.layers):
        for name, value in layer.state_dict().items():
            weights[f"layer{number}.{name}"] = value.half() if half else value
    return weights


def votes(network: Network, image: Tensor, half: bool) -> Tensors:
    """Everything that the routing loop needs, for one picture ``[1, C, H, W]``."""
    cast, lower = network.votes(image)
    bias = network.routed.classes.bias
    return {
        "votes": cast[0].half() if half else cast[0],
        "primary_lengths": ops.capsule_lengths(lower[0]),
        "bias": torch.zeros(cast.shape[2:]) if bias is None else bias,
    }


def trace(network: Network, image: Tensor, iterations: int) -> Tensors:
    """The routing of one picture as PyTorch does it; a routing other than dynamic runs its own iterations.

    Shape:
        coefficients, logits: ``[R, I, J]``. outputs: ``[R, J, D]``. lengths: ``[R, J]``, the scores of the classes
        after each iteration. primary_lengths: ``[I]``.
    """
    layer, loop = network.routed.classes, network.page_loop
    if loop is not None:
        cast, lower = network.votes(image)
        _, found = ops.dynamic_routing(cast, iterations, layer.bias, loop.leaky, return_trace=True)
    else:
        lower = network.lower_capsules(image)
        _, found = layer.trace(lower)
    scores = ops.capsule_lengths(found.outputs) if found.activations is None else found.activations
    return {
        "coefficients": found.coefficients[:, 0],
        "logits": found.logits[:, 0],
        "outputs": found.outputs[:, 0],
        "lengths": scores[:, 0],
        "primary_lengths": ops.capsule_lengths(lower[0]),
    }


def affine(network: Network, image: Tensor, kind: Kind) -> Tensors:
    """One picture over the whole range of a slider, with what the network says to each."""
    values = slider_values(kind, network.model.image_shape)
    images = transform((image[0] * 255).round().byte(), kind, values)
    scores = network.model(network.prepared(to_unit_float(images))).scores.float()
    return {"values": values, "lengths": scores, "images": images}


@dataclass(frozen=True)
class Survey:
    """A network over the test examples.

    Shape:
        mean, std: ``[J, D]``, of each class capsule over the examples of its class; empty for a CNN.
        count: int64 ``[J]``. mistakes: int64 ``[M]``, in the order of the examples. searched: how many were looked at.
    """

    mean: Tensor
    std: Tensor
    count: Tensor
    mistakes: Tensor
    searched: int

    @property
    def error(self) -> float:
        """Share of the examples that are wrong."""
        return len(self.mistakes) / max(1, self.searched)


def survey(network: Network, examples: ExampleSet) -> Survey:
    """One pass over the first 2,000 examples; a refusal where they do not fit the network."""
    if not examples.fit(network.model):
        C, H, W = network.model.image_shape
        raise RefusalError(
            f"the pictures of {examples.name} ({'×'.join(map(str, examples.image_shape))}, {len(examples.classes)} "
            f"classes) do not fit this network ({C}×{H}×{W}, {network.model.num_classes} classes); "
            "start the studio again, or with other --data",
            404,
        )
    positions = torch.arange(min(len(examples), MOST_SURVEYED))
    capsules, wrong = [], []
    for part in positions.split(MOST_IMAGES):
        images = to_unit_float(examples.pictures(part))
        out = network.model(network.prepared(images))
        named = predicted_classes(out.scores, examples.examples.labels(part))
        wrong.append((named != examples.truth(part)).any(dim=1))
        if network.has_capsules:
            capsules.append(out.capsules)
    truth = examples.truth(positions)
    mistakes = torch.cat(wrong).nonzero()[:, 0]
    count = truth.sum(dim=0)
    if not capsules:
        return Survey(torch.empty(0), torch.empty(0), count, mistakes, len(positions))
    every = torch.cat(capsules).double()  # [N, J, D]
    weight = truth.double().unsqueeze(2) / count.clamp(min=1).double()[None, :, None]
    mean = (weight * every).sum(dim=0)
    std = (weight * (every - mean).square()).sum(dim=0).sqrt()
    return Survey(mean.float(), std.float(), count, mistakes, len(positions))
