"""Deep stacks: residual connections around convolutional capsules, and layers that iterate at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from torchcaps import ops
from torchcaps.nn.conv_capsules import ConvCapsules
from torchcaps.nn.linear import CapsuleLinear
from torchcaps.nn.routing import InvertedAttentionRouting, RoutingAlgorithm
from torchcaps.ops import RoutingOutput

__all__ = ["CapsuleStack", "ResidualCapsules"]


class ResidualCapsules(nn.Module):
    """Convolutional capsules with a way around them: the mean of what came in and what was routed.

    A mean, since that of two capsules shorter than 1 is so, too: a length stays a probability without another
    squash, which would shorten the capsules layer by layer until nothing is left.

    Args:
        layer: has as many types and dimensions above as below, stride 1 and ``padding="same"``.

    Shape:
        capsules ``[B, H, W, C, D]``, activations ``[B, H, W, C]`` → the same.

    Example:
        >>> import torch
        >>> from torchcaps import nn
        >>> block = nn.ResidualCapsules(nn.ConvCapsules(4, 4, 8, 8, padding="same"))
        >>> block(torch.randn(2, 5, 5, 4, 8)).capsules.shape
        torch.Size([2, 5, 5, 4, 8])
    """

    def __init__(self, layer: ConvCapsules) -> None:
        super().__init__()
        same = layer.padding == "same" and layer.stride == 1 and layer.kernel_size is not None
        if (
            not same
            or layer.weight.shape[1] != layer.weight.shape[2]
            or layer.weight.shape[-1] != layer.weight.shape[-2]
        ):
            raise ValueError(
                "a residual connection needs the same grid, types and dimensions above and below: padding='same', "
                f"stride=1, in_types = out_types, in_dim = out_dim; got {layer}"
            )
        self.layer = layer

    def reset_parameters(self) -> None:
        self.layer.reset_parameters()

    def forward(self, capsules: Tensor, activations: Tensor | None = None) -> RoutingOutput:
        routed = self.layer(capsules, activations)
        mean = (capsules + routed.capsules) / 2
        if not isinstance(self.layer.routing, RoutingAlgorithm) or self.layer.routing.squashes:
            return RoutingOutput(mean, ops.capsule_lengths(mean))
        if activations is None:
            return RoutingOutput(mean, routed.activations)
        return RoutingOutput(mean, (activations + routed.activations) / 2)


class CapsuleStack(nn.Module):
    """Layers with inverted attention that iterate at the same time (Tsai et al. 2020).

    Layer by layer, each routing is finished before the next begins. Concurrently, a first pass fills all layers; then
    in every iteration each layer looks at what the one below held in the iteration before, so that parents also learn
    from how their children changed their minds.

    Args:
        layers: :class:`CapsuleLinear` with ``routing="inverted-attention"``, from below to above. Only the
            activations of the last are returned; the others can do without: ``"presence": False``.
        iterations: R, at least 1.
        concurrent: ``False`` for layer by layer.

    Shape:
        ``[B, I, P]`` → capsules ``[B, J, D]`` and activations ``[B, J]`` of the last layer.
    """

    def __init__(self, layers: Sequence[CapsuleLinear], iterations: int = 3, concurrent: bool = True) -> None:
        super().__init__()
        for layer in layers:
            if not isinstance(layer.routing, InvertedAttentionRouting):
                raise ValueError(f"concurrent iterations need routing='inverted-attention' in every layer, got {layer}")
        if not layers or iterations < 1:
            raise ValueError(f"a stack needs layers and iterations ≥ 1, got {len(layers)} and {iterations}")
        self.layers = nn.ModuleList(layers)
        self.iterations, self.concurrent = iterations, concurrent

    def reset_parameters(self) -> None:
        for layer in self.layers:
            layer.reset_parameters()  # type: ignore[operator]

    def forward(self, u: Tensor) -> RoutingOutput:
        outputs: list[RoutingOutput] = []
        for layer in self.layers:
            below = outputs[-1].capsules if outputs else u
            outputs.append(self._step(layer, below, None, 1 if self.concurrent else self.iterations))
        for _ in range(self.iterations - 1 if self.concurrent else 0):
            below_all = [u, *(output.capsules for output in outputs)]
            outputs = [
                self._step(layer, below, output.capsules, 1)
                for layer, below, output in zip(self.layers, below_all, outputs, strict=False)
            ]
        return outputs[-1]

    def _step(self, layer: nn.Module, below: Tensor, start: Tensor | None, iterations: int) -> RoutingOutput:
        assert isinstance(layer, CapsuleLinear)
        assert isinstance(layer.routing, InvertedAttentionRouting)
        out: RoutingOutput = layer.routing(layer.votes(below), start=start, iterations=iterations)
        return out
