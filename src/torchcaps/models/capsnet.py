"""CapsNet of "Dynamic Routing Between Capsules", for pictures of any size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from einops import rearrange
from torch import Tensor, nn
from torch.nn import init

from torchcaps.models.capsule_model import CapsuleModel, make_decoder
from torchcaps.models.output import CapsNetOutput
from torchcaps.models.presets import get_preset
from torchcaps.models.registry import register_model
from torchcaps.nn import (
    CapsNetLoss,
    CapsuleLinear,
    ConvolutionStem,
    PictureConv2d,
    PrimaryCapsules,
    ReconstructionDecoder,
    Routing,
)
from torchcaps.nn.routing import routing_config
from torchcaps.nn.start_values import BIAS_START, truncated_normal_
from torchcaps.ranges import Chance, Classes, Factor, ImageShape, Iterations, Size, Whole, Widths

__all__ = ["CapsNet"]

FIRST_CONVOLUTION_STD = 0.05


@register_model("capsnet")
class CapsNet(CapsuleModel):
    """Convolution → primary capsules → class capsules by routing → decoder.

    Args:
        image_shape: channels, height and width of the pictures.
        num_classes: J; one class capsule each.
        preset: ``"official"`` (the authors' code, which made the published figures) or ``"paper"`` (their text); see
            :class:`torchcaps.models.Preset`. The last six arguments override single choices of it.
        conv_channels, conv_kernel: first convolution, ReLU.
        stem: channels of 3×3 convolutions with batch normalisation in place of the first convolution; none in the
            paper. Four of them see as far as its 9×9. ``stem_dropout`` is the chance that a channel between two of
            them is silent in a training step.
        primary_types, primary_dim, primary_kernel, primary_stride: primary capsules; P is ``primary_dim``.
        capsule_dim: D of the class capsules.
        routing: a name of :func:`torchcaps.list_routings`, a name with settings such as
            ``{"name": "em", "iterations": 2}``, a routing object, or a function of your own on votes ``[B, I, J, D]``.
        iterations, leaky: of the routing, where it has them and its settings do not say otherwise.
        shared_weights: ``"positions"`` shares the transformations of a type of lower capsules among all positions, so
            that what is learned at one place is known at all; true takes one for all lower capsules. Far fewer weights
            on large pictures.
        padding: of both convolutions, ``"valid"`` as in the paper or ``"same"``.
        decoder: ``"fc"`` (the paper's), ``"conv"`` (for larger pictures) or ``"none"``.
        decoder_hidden: widths of the ``"fc"`` decoder.
        capsule_dropout, position_dropout: chance that a lower capsule, or all of one position of the grid, is silent in
            a training step, so that no class comes to depend on a few of them; the others speak up by
            1 / (1 − chance). No weights, nothing at test time.
        primary_scale, capsule_bias, start_values, routing_gradient, loss_balance, reconstruction_scale: see
            :class:`torchcaps.models.Preset`.

    Example:
        >>> import torch, torchcaps
        >>> model = torchcaps.create_model("capsnet", image_shape=(1, 28, 28), num_classes=10)
        >>> out = model(torch.rand(2, 1, 28, 28))
        >>> out.capsules.shape, out.lengths.shape
        (torch.Size([2, 10, 16]), torch.Size([2, 10]))
        >>> model.reconstruct(out.capsules, out.lengths.argmax(1)).shape
        torch.Size([2, 1, 28, 28])
    """

    def __init__(
        self,
        image_shape: ImageShape = (1, 28, 28),
        num_classes: Classes = 10,
        preset: str = "official",
        conv_channels: Size = 256,
        conv_kernel: Size = 9,
        stem: Widths = (),
        stem_dropout: Chance = 0.0,
        primary_types: Size = 32,
        primary_dim: Size = 8,
        primary_kernel: Size = 9,
        primary_stride: Size = 2,
        capsule_dim: Size = 16,
        iterations: Iterations = 3,
        leaky: bool = False,
        routing: str | Mapping[str, Any] | Routing = "dynamic",
        shared_weights: bool | Annotated[int, Whole(0, 1)] | str = False,
        padding: str = "valid",
        decoder: str = "fc",
        decoder_hidden: Widths = (512, 1024),
        capsule_dropout: Chance = 0.0,
        position_dropout: Chance = 0.0,
        primary_scale: Factor | None = None,
        capsule_bias: bool | None = None,
        start_values: str | None = None,
        routing_gradient: str | None = None,
        loss_balance: str | None = None,
        reconstruction_scale: Factor | None = None,
    ) -> None:
        super().__init__()
        self.take_settings(locals())
        self.settings["routing"] = routing_config(routing)
        self.settings["stem"] = tuple(stem)
        if shared_weights not in (False, True, "positions"):
            raise ValueError(f"shared_weights must be true, false or 'positions', got {shared_weights!r}")
        self.preset = get_preset(preset)
        C, H, W = self.image_shape
        self.capsule_dropout, self.position_dropout = capsule_dropout, position_dropout
        self.loss_balance = loss_balance or self.preset.loss_balance
        self.reconstruction_scale = (
            self.preset.reconstruction_scale if reconstruction_scale is None else reconstruction_scale
        )
        self.make_loss()  # an unknown balance is an error here, not after the data has been read
        if primary_scale is None:
            primary_scale = self.preset.primary_scale or 1 / primary_types
        self.start_values = start_values or self.preset.start_values
        if self.start_values not in ("authors", "torch"):
            raise ValueError(f"unknown start_values {start_values!r}; choose 'authors' or 'torch'")

        self.conv: PictureConv2d | ConvolutionStem
        if stem:
            self.conv = ConvolutionStem(C, stem, padding, stem_dropout)
            channels, shrink = stem[-1], self.conv.shrink
        else:
            self.conv = PictureConv2d(C, conv_channels, conv_kernel, padding=padding)
            channels, shrink = conv_channels, 0 if padding == "same" else conv_kernel - 1
        self.primary = PrimaryCapsules(
            channels, primary_types, primary_dim, primary_kernel, primary_stride, padding, primary_scale
        )
        least = shrink + primary_kernel
        if padding == "valid" and min(H, W) < least:
            first = f"{len(stem)} convolutions" if stem else f"a kernel of {conv_kernel}"
            raise ValueError(
                f"pictures of {H}×{W} are too small: without padding, {first} and a kernel of {primary_kernel} need at "
                f"least {least}×{least}; use larger pictures, smaller conv_kernel and primary_kernel (a shorter stem), "
                "or padding='same'"
            )
        rows, columns = self.primary.grid_shape(H - shrink, W - shrink)
        self.primary_grid = (rows, columns, primary_types)  # the order of the lower capsules
        by_position = shared_weights == "positions"
        self.classes = CapsuleLinear(
            None if shared_weights and not by_position else rows * columns * primary_types,
            num_classes,
            primary_dim,
            capsule_dim,
            routing,
            iterations,
            self.preset.capsule_bias if capsule_bias is None else capsule_bias,
            leaky,
            routing_gradient or self.preset.routing_gradient,
            in_types=primary_types if by_position else None,
        )
        self.decoder = make_decoder(decoder, num_classes, capsule_dim, self.image_shape, decoder_hidden)
        self._start_like_the_preset()

    def reset_parameters(self) -> None:
        """Draw new start values."""
        for layer in (self.conv, self.primary, self.classes, self.decoder):
            if layer is not None:
                layer.reset_parameters()  # type: ignore[operator]
        self._start_like_the_preset()

    def _start_like_the_preset(self) -> None:
        """Each layer has drawn its own values already; change those that the preset wants otherwise."""
        if self.start_values == "authors":
            if isinstance(self.conv, PictureConv2d):
                truncated_normal_(self.conv.weight, FIRST_CONVOLUTION_STD)
                init.constant_(self.conv.bias, BIAS_START)  # type: ignore[arg-type]
        else:
            out_channels, in_channels = self.primary.weight.shape[:2]
            reference = nn.Conv2d(in_channels, out_channels, self.primary.kernel_size)
            self.primary.load_state_dict(reference.state_dict())
            if isinstance(self.decoder, ReconstructionDecoder):
                for layer in self.decoder.layers:
                    layer.reset_parameters()  # type: ignore[operator]

    def forward(self, images: Tensor, return_trace: bool = False) -> CapsNetOutput:
        lower = self._silenced(self.lower_capsules(images))
        routed = self.classes.traced(lower) if return_trace else self.classes(lower, full=True)
        return CapsNetOutput(routed.capsules, routed.activations, routed.trace)

    def _silenced(self, lower: Tensor) -> Tensor:
        """Lower capsules ``[B, I, P]`` without those that dropout silences; all of them outside of training."""
        if not self.training:
            return lower
        if self.position_dropout:
            rows, columns, types = self.primary_grid
            positions = rearrange(lower, "b (g t) p -> b g (t p)", g=rows * columns, t=types)
            lower = rearrange(
                nn.functional.dropout1d(positions, self.position_dropout), "b g (t p) -> b (g t) p", t=types
            )
        return nn.functional.dropout1d(lower, self.capsule_dropout) if self.capsule_dropout else lower

    def lower_capsules(self, images: Tensor) -> Tensor:
        """Primary capsules ``[B, I, P]``, in the order of ``primary_grid``: row, column, type."""
        self.check_images(images)
        return self.primary(self.conv(images).relu())

    def make_loss(self) -> CapsNetLoss:
        """The loss that belongs to the preset, or to the choices made in its place."""
        return CapsNetLoss(self.loss_balance, self.reconstruction_scale)
