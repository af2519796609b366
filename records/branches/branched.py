"""CapsNet with several first layers of different kinds side by side, and one routing over the capsules of all."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from torchcaps.models.base import check_image_shape
from torchcaps.models.capsule_model import CapsuleModel, make_decoder
from torchcaps.models.output import CapsNetOutput
from torchcaps.models.registry import register_model
from torchcaps.nn import CapsNetLoss, CapsuleLinear, ConvolutionStem, PrimaryCapsules, Routing
from torchcaps.nn.routing import routing_config

__all__ = ["Branch", "BranchedCapsNet"]


@dataclass(frozen=True)
class Branch:
    """One way from the picture to lower capsules: convolutions of one kernel, the last of which makes the capsules.

    Attributes:
        kernel: side of all its kernels.
        channels: of the convolutions before the capsules, each normalised over the batch.
        types: kinds of lower capsules.
        stride: of the convolution that makes them.
    """

    kernel: int
    channels: Sequence[int]
    types: int
    stride: int = 2

    @classmethod
    def of(cls, settings: Branch | Mapping[str, Any]) -> Branch:
        """From the table of a recipe."""
        if isinstance(settings, Branch):
            return settings
        known = [field.name for field in fields(cls)]
        for key in settings:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                raise TypeError(f"a branch has no setting {key!r}; {f'did you mean {near[0]!r}?' if near else known}")
        return cls(**settings)


class _BranchLayers(nn.Module):
    """Picture → the lower capsules of one branch."""

    def __init__(self, branch: Branch, image_shape: tuple[int, int, int], dim: int) -> None:
        super().__init__()
        C, H, W = image_shape
        self.conv = ConvolutionStem(C, branch.channels, kernel=branch.kernel)
        self.primary = PrimaryCapsules(
            branch.channels[-1], branch.types, dim, branch.kernel, branch.stride, scale=1 / branch.types
        )
        least = self.conv.shrink + branch.kernel
        if min(H, W) < least:
            raise ValueError(
                f"pictures of {H}×{W} are too small for {len(branch.channels) + 1} convolutions with kernels of "
                f"{branch.kernel}, which need at least {least}×{least}; use larger pictures or shorter branches"
            )
        rows, columns = self.primary.grid_shape(H - self.conv.shrink, W - self.conv.shrink)
        self.capsules = rows * columns * branch.types

    def forward(self, images: Tensor) -> Tensor:
        lower: Tensor = self.primary(self.conv(images).relu())
        return lower


@register_model("capsnet-branches")
class BranchedCapsNet(CapsuleModel):
    """Branches of convolutions with kernels of different size → their lower capsules, all in one routing → decoder.

    Networks of different kinds make different errors. Here they are one network: every branch sees the picture in its
    own way, and the class capsules are what the votes of all branches agree on. In training branches fall silent by
    chance, so that each learns to know the classes without the others.

    Args:
        image_shape: channels, height and width of the pictures.
        num_classes: J; one class capsule each.
        branches: a :class:`Branch` or its settings for each.
        branch_dropout: chance that a branch is silent for an example in a training step; one always speaks, and those
            that do speak up in proportion. Nothing at test time.
        primary_dim, capsule_dim: P and D.
        iterations, leaky, routing: see :class:`torchcaps.models.CapsNet`.
        decoder, decoder_hidden: likewise.
        loss_balance, reconstruction_scale: see :class:`torchcaps.nn.CapsNetLoss`.

    Example:
        >>> import torch, torchcaps
        >>> model = torchcaps.create_model("capsnet-branches")
        >>> model(torch.rand(2, 1, 28, 28)).lengths.shape
        torch.Size([2, 10])
    """

    BRANCHES = (
        Branch(3, (32, 64, 64, 96, 96, 128, 128, 160, 160), 22),
        Branch(5, (32, 64, 96, 128), 20),
        Branch(7, (48, 96, 144), 24, 1),
    )

    def __init__(
        self,
        image_shape: tuple[int, int, int] = (1, 28, 28),
        num_classes: int = 10,
        branches: Sequence[Branch | Mapping[str, Any]] = BRANCHES,
        branch_dropout: float = 0.5,
        primary_dim: int = 8,
        capsule_dim: int = 16,
        iterations: int = 3,
        leaky: bool = False,
        routing: str | Mapping[str, Any] | Routing = "dynamic",
        decoder: str = "fc",
        decoder_hidden: Sequence[int] = (512, 1024),
        loss_balance: str = "official",
        reconstruction_scale: float = 0.0005,
    ) -> None:
        super().__init__()
        self.settings = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        self.settings["routing"] = routing_config(routing)
        chosen = [Branch.of(branch) for branch in branches]
        if not chosen:
            raise ValueError("branches must have at least one branch")
        self.settings["branches"] = [asdict(branch) for branch in chosen]
        if not 0 <= branch_dropout < 1:
            raise ValueError(f"branch_dropout must be a chance from 0 to below 1, got {branch_dropout}")
        self.image_shape = check_image_shape(image_shape, num_classes)
        self.num_classes, self.branch_dropout = num_classes, branch_dropout
        self.loss_balance, self.reconstruction_scale = loss_balance, reconstruction_scale
        self.make_loss()  # an unknown balance is an error here, not after the data has been read
        self.branches = nn.ModuleList(_BranchLayers(branch, self.image_shape, primary_dim) for branch in chosen)
        self.branch_capsules = tuple(branch.capsules for branch in self.branches)
        self.classes = CapsuleLinear(
            sum(self.branch_capsules), num_classes, primary_dim, capsule_dim, routing, iterations, leaky=leaky
        )
        self.decoder = make_decoder(decoder, num_classes, capsule_dim, self.image_shape, decoder_hidden)

    def reset_parameters(self) -> None:
        """Draw new start values."""
        for branch in self.branches:
            branch.conv.reset_parameters()
            branch.primary.reset_parameters()
        self.classes.reset_parameters()
        if self.decoder is not None:
            self.decoder.reset_parameters()  # type: ignore[operator]

    def forward(self, images: Tensor, return_trace: bool = False) -> CapsNetOutput:
        lower = self.lower_capsules(images)
        out = self.classes.traced(lower) if return_trace else self.classes(lower, full=True)
        return CapsNetOutput(out.capsules, out.activations, out.trace)

    def lower_capsules(self, images: Tensor) -> Tensor:
        """Primary capsules ``[B, I, P]``, branch by branch, each in the order row, column, type."""
        self.check_images(images)
        lower = [branch(images) for branch in self.branches]
        if self.training and self.branch_dropout:
            voices = self._voices(images)
            lower = [capsules * voice[:, None, None] for capsules, voice in zip(lower, voices.unbind(1), strict=True)]
        return torch.cat(lower, dim=1)

    def _voices(self, images: Tensor) -> Tensor:
        """How loud each branch is for each example, ``[B, branches]``: 0 or more, 1 on average."""
        drawn = torch.rand(images.shape[0], len(self.branches), device=images.device)
        speaks = (drawn >= self.branch_dropout) | (drawn == drawn.amax(1, keepdim=True))
        return speaks * (len(self.branches) / speaks.sum(1, keepdim=True))

    def make_loss(self) -> CapsNetLoss:
        """Margin and reconstruction, in the balance that was asked for."""
        return CapsNetLoss(self.loss_balance, self.reconstruction_scale)
