"""Efficient-CapsNet (Mazzia, Salvetti, Chiaberge 2021): few parameters, self-attention in place of iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from einops import rearrange
from torch import Tensor, nn
from torch.nn import init

from torchcaps import ops
from torchcaps.models.capsule_model import CapsuleModel, make_decoder
from torchcaps.models.output import CapsNetOutput
from torchcaps.models.registry import register_model
from torchcaps.nn import CapsuleLinear, PictureConv2d, Routing, WholeMapConv2d
from torchcaps.nn.routing import routing_config
from torchcaps.nn.start_values import truncated_normal_
from torchcaps.ranges import Classes, ImageShape, Iterations, Size, Widths

__all__ = ["EfficientCapsNet"]


@register_model("efficient-capsnet")
class EfficientCapsNet(CapsuleModel):
    """Four convolutions → one depthwise convolution over the whole map → 16 capsules → class capsules.

    161,824 learned parameters for 28×28 pictures of 10 classes, as published; a decoder comes on top.

    Args:
        image_shape: channels, height and width of the pictures.
        num_classes: J; one class capsule each.
        primary_dim: P; 128 / P primary capsules.
        capsule_dim: D of the class capsules.
        routing: ``"self-attention"`` in the paper; any other works, too.
        iterations: of a routing that iterates.
        decoder: ``"fc"``, ``"conv"`` or ``"none"``; the published count is without, the published training with
            ``"fc"``.

    Example:
        >>> import torchcaps
        >>> model = torchcaps.create_model("efficient-capsnet")
        >>> sum(p.numel() for p in model.parameters())
        161824
    """

    CHANNELS = (32, 64, 64, 128)
    KERNELS = (5, 3, 3, 3)
    STRIDES = (1, 1, 1, 2)

    def __init__(
        self,
        image_shape: ImageShape = (1, 28, 28),
        num_classes: Classes = 10,
        primary_dim: Size = 8,
        capsule_dim: Size = 16,
        routing: str | Mapping[str, Any] | Routing = "self-attention",
        iterations: Iterations = 3,
        decoder: str = "none",
        decoder_hidden: Widths = (512, 1024),
    ) -> None:
        super().__init__()
        self.take_settings(locals())
        self.settings["routing"] = routing_config(routing)
        self.primary_dim = primary_dim
        width = self.CHANNELS[-1]
        if width % primary_dim:
            raise ValueError(f"primary_dim must divide the {width} channels of the last convolution, got {primary_dim}")
        before, H, W = self.image_shape
        layers: list[nn.Module] = []
        for channels, kernel, stride in zip(self.CHANNELS, self.KERNELS, self.STRIDES, strict=True):
            layers += [PictureConv2d(before, channels, kernel, stride), nn.ReLU(), nn.BatchNorm2d(channels)]
            before, H, W = channels, (H - kernel) // stride + 1, (W - kernel) // stride + 1
        if min(H, W) < 1:
            raise ValueError(f"pictures of {image_shape[1]}×{image_shape[2]} are too small; use at least 11×11")
        self.features = nn.Sequential(*layers)
        # Each channel is summed up over all positions by weights of its own: what is left is one number a channel.
        self.depthwise = WholeMapConv2d(width, (H, W))
        self.classes = CapsuleLinear(
            width // primary_dim, num_classes, primary_dim, capsule_dim, routing, iterations, bias=False
        )
        self.decoder = make_decoder(decoder, num_classes, capsule_dim, self.image_shape, decoder_hidden)
        self._start()

    def reset_parameters(self) -> None:
        """Draw new start values."""
        for layer in (*self.features, self.depthwise, self.classes, self.decoder):
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()
        self._start()

    def _start(self) -> None:
        """Start values of the authors' code: He's for ReLUs, Xavier's for the depthwise sums.

        He's for the class weights, too, with a fan of I·J·P, as their framework counts it for a tensor of this shape. A
        fan of P alone makes the class capsules so long that the squash is flat, and nothing is learned.
        """
        for layer in (*self.features, self.depthwise):
            if isinstance(layer, nn.Conv2d):
                init.kaiming_normal_(layer.weight)
                init.zeros_(layer.bias)  # type: ignore[arg-type]
        init.xavier_uniform_(self.depthwise.weight)
        I, J, _, P = self.classes.weight.shape
        truncated_normal_(self.classes.weight, (2 / (I * J * P)) ** 0.5)

    def forward(self, images: Tensor, return_trace: bool = False) -> CapsNetOutput:
        lower = self.lower_capsules(images)
        out = self.classes.traced(lower) if return_trace else self.classes(lower, full=True)
        return CapsNetOutput(out.capsules, out.activations, out.trace)

    def lower_capsules(self, images: Tensor) -> Tensor:
        """Primary capsules ``[B, I, P]``; each sees the whole picture."""
        self.check_images(images)
        channels = self.depthwise(self.features(images))
        lower = ops.squash(rearrange(channels, "b (i p) 1 1 -> b i p", p=self.primary_dim), kind="exponential")
        return lower.to(self.classes.weight.dtype)  # the sums of a network in half precision are wider
