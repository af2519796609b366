"""A deep capsule network: stages of convolutional capsules with residual connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from torch import Tensor, nn

from torchcaps.models.capsule_model import CapsuleModel, make_decoder
from torchcaps.models.output import CapsNetOutput
from torchcaps.models.registry import register_model
from torchcaps.nn import CapsuleLinear, ConvCapsules, PictureConv2d, PrimaryCapsules, ResidualCapsules, Routing
from torchcaps.nn.routing import routing_config
from torchcaps.nn.routing.calling import hidden_routing
from torchcaps.ops import RoutingOutput, capsule_lengths
from torchcaps.ranges import Classes, ImageShape, Iterations, Many, Size, Whole, Widths

__all__ = ["DeepCapsNet"]


@register_model("capsnet-deep")
class DeepCapsNet(CapsuleModel):
    """Convolution → primary capsules → stages of capsules, each half as wide as the one before → class capsules.

    A stage is one convolutional capsule layer of stride 2 and ``depth`` residual ones at the same size. The class
    capsules share their weights over positions, so that pictures of any size cost the same parameters.

    Args:
        image_shape: channels, height and width of the pictures.
        num_classes: J; one class capsule each.
        channels: of the first convolution.
        types: kinds of capsules in each stage; as many stages as numbers.
        depth: residual layers in each stage.
        dim: dimensions of the capsules; ``capsule_dim`` those of the classes.
        routing, iterations: of all capsule layers; a routing object is copied, so that each learns its own parameters.
        decoder: ``"fc"``, ``"conv"`` or ``"none"``.

    Example:
        >>> import torch, torchcaps
        >>> model = torchcaps.create_model("capsnet-deep", channels=16, types=(4, 4), depth=1)
        >>> model(torch.rand(2, 1, 28, 28)).lengths.shape
        torch.Size([2, 10])
    """

    def __init__(
        self,
        image_shape: ImageShape = (1, 28, 28),
        num_classes: Classes = 10,
        channels: Size = 64,
        types: Annotated[Sequence[int], Many(Whole(1, 65_536), 1, 16)] = (8, 8),
        depth: Annotated[int, Whole(0, 64)] = 2,
        dim: Size = 8,
        capsule_dim: Size = 16,
        routing: str | Mapping[str, Any] | Routing = "dynamic",
        iterations: Iterations = 3,
        decoder: str = "fc",
        decoder_hidden: Widths = (512, 1024),
    ) -> None:
        super().__init__()
        self.take_settings(locals())
        routing = self.settings["routing"] = routing_config(routing)  # each layer builds its own, of its own size

        def capsules(before: int, after: int, stride: int) -> ConvCapsules:
            own = hidden_routing(routing)
            return ConvCapsules(before, after, dim, dim, 3, stride, "same", routing=own, iterations=iterations)

        C, H, W = self.image_shape
        self.conv = nn.Sequential(PictureConv2d(C, channels, 5, padding=2), nn.BatchNorm2d(channels), nn.ReLU())
        self.primary = PrimaryCapsules(channels, types[0], dim, kernel_size=3, stride=2, padding="same")
        self.grid = self.primary.grid_shape(H, W)
        stages: list[nn.Module] = []
        before = types[0]
        for after in types:
            stages.append(capsules(before, after, stride=2))
            stages += [ResidualCapsules(capsules(after, after, stride=1)) for _ in range(depth)]
            before = after
        self.stages = CapsuleStages(stages)
        self.classes = CapsuleLinear(None, num_classes, dim, capsule_dim, routing, iterations)
        self.decoder = make_decoder(decoder, num_classes, capsule_dim, self.image_shape, decoder_hidden)

    def reset_parameters(self) -> None:
        """Draw new start values."""
        for layer in (*self.conv, self.primary, *self.stages.layers, self.classes, self.decoder):
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()

    def forward(self, images: Tensor, return_trace: bool = False) -> CapsNetOutput:
        self.check_images(images)
        primary = self.primary(self.conv(images)).unflatten(1, (*self.grid, self.primary.types))
        x = self.stages(primary)
        lower, activations = x.capsules.flatten(1, 3), x.activations.flatten(1)
        if return_trace:
            out = self.classes.traced(lower, activations=activations)
        else:
            out = self.classes(lower, activations=activations, full=True)
        return CapsNetOutput(out.capsules, out.activations, out.trace)


class CapsuleStages(nn.Module):
    """Layers on grids of capsules, one after the other."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, capsules: Tensor) -> RoutingOutput:
        x = RoutingOutput(capsules, capsule_lengths(capsules))
        for layer in self.layers:
            x = layer(x.capsules, x.activations)
        return x
