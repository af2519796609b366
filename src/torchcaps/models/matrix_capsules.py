"""The network of "Matrix Capsules with EM Routing" (Hinton, Sabour, Frosst 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from torch import Tensor

from torchcaps.models.capsule_model import CapsuleModel, make_decoder
from torchcaps.models.output import CapsNetOutput
from torchcaps.models.registry import register_model
from torchcaps.nn import CapsuleLoss, ConvCapsules, PictureConv2d, PrimaryPoses, Routing, SpreadLoss
from torchcaps.nn.routing import routing_config
from torchcaps.nn.routing.calling import hidden_routing
from torchcaps.ranges import Classes, ImageShape, Iterations, Number, Size, Whole

__all__ = ["MatrixCapsules"]

Margin = Annotated[float, Number(0, 1, above=True)]


@register_model("matrix-capsules")
class MatrixCapsules(CapsuleModel):
    """Convolution A → primary capsules B → convolutional capsules C and D → class capsules, all 4×4 poses.

    Args:
        image_shape: channels, height and width of the pictures.
        num_classes: J; one class capsule each.
        A: channels of the 5×5 convolution of stride 2.
        B: types of primary capsules, made by a 1×1 convolution.
        C, D: types of the convolutional capsules, 3×3 of stride 2 and 3×3 of stride 1.
        pose_size: m; a capsule is an m×m matrix.
        routing: of the three capsule layers, ``"em"`` in the paper; any other works, too. A routing object is copied,
            so that each layer learns its own parameters.
        iterations: of the routing; 3 in the paper. Densities in 16 dimensions are sharp, so that the assignment is
            nearly hard after one E step; the default of 2 is provisional, see ``docs/routing.md``.
        margin, margin_start: of the spread loss, at the end of training and at its start.
        coordinate_addition: tell the class capsules where their children are.
        decoder: ``"fc"``, ``"conv"`` or, as in the paper, ``"none"``.

    Example:
        >>> import torch, torchcaps
        >>> model = torchcaps.create_model("matrix-capsules", A=64, B=8, C=16, D=16)
        >>> out = model(torch.rand(2, 1, 28, 28))
        >>> out.capsules.shape, out.lengths.shape
        (torch.Size([2, 10, 16]), torch.Size([2, 10]))
    """

    def __init__(
        self,
        image_shape: ImageShape = (1, 28, 28),
        num_classes: Classes = 10,
        A: Size = 64,
        B: Size = 8,
        C: Size = 16,
        D: Size = 16,
        pose_size: Annotated[int, Whole(1, 64)] = 4,
        routing: str | Mapping[str, Any] | Routing = "em",
        iterations: Iterations = 2,
        margin: Margin = 0.9,
        coordinate_addition: bool = True,
        decoder: str = "none",
        margin_start: Margin = 0.2,
    ) -> None:
        super().__init__()
        self.take_settings(locals())
        routing = self.settings["routing"] = routing_config(routing)  # each layer builds its own, of its own size
        self.margin, self.margin_start = margin, margin_start
        self.make_loss()  # a margin that cannot be is an error here, not after the data has been read
        if min(self.image_shape[1:]) < 17:
            raise ValueError(
                f"pictures of {self.image_shape[1]}×{self.image_shape[2]} are too small for three layers of capsules; "
                "use at least 17×17"
            )
        pose = pose_size**2
        how: dict[str, Any] = dict(pose="matrix", iterations=iterations)
        self.conv = PictureConv2d(self.image_shape[0], A, 5, stride=2)
        self.primary = PrimaryPoses(A, B, pose)
        self.first = ConvCapsules(B, C, pose, pose, 3, stride=2, routing=hidden_routing(routing), **how)
        self.second = ConvCapsules(C, D, pose, pose, 3, routing=hidden_routing(routing), **how)
        self.classes = ConvCapsules(
            D, num_classes, pose, pose, None, routing=routing, coordinate_addition=coordinate_addition, **how
        )
        self.decoder = make_decoder(decoder, num_classes, pose, self.image_shape)

    def reset_parameters(self) -> None:
        """Draw new start values."""
        for layer in (self.conv, self.primary, self.first, self.second, self.classes, self.decoder):
            if layer is not None:
                layer.reset_parameters()  # type: ignore[operator]

    def forward(self, images: Tensor, return_trace: bool = False) -> CapsNetOutput:
        self.check_images(images)
        x = self.primary(self.conv(images).relu())
        for layer in (self.first, self.second):
            x = layer(x.capsules, x.activations)
        out = self.classes(x.capsules, x.activations, return_trace)
        return CapsNetOutput(out.capsules, out.activations, out.trace)

    def make_loss(self) -> CapsuleLoss:
        """The spread loss of the paper, whose margin grows in the course of training."""
        return SpreadLoss(self.margin, self.margin_start)
