"""What a routing algorithm is to a layer: an object with a name, settings and, for some, learned parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from torchcaps.ops import RoutingOutput
from torchcaps.ops.routing.family.common import check_iterations
from torchcaps.ops.squash import check_squash

__all__ = ["LayerSizes", "RoutingAlgorithm"]


@dataclass(frozen=True)
class LayerSizes:
    """The sizes of the layer that a routing works in; ``in_capsules`` is ``None`` where any number fits.

    Attributes:
        in_capsules, out_capsules, in_dim, out_dim: I, J, P and D.
        device, dtype: where and as what learned parameters are made.
    """

    in_capsules: int | None
    out_capsules: int
    in_dim: int
    out_dim: int
    device: torch.device | str | None = None
    dtype: torch.dtype | None = None


class RoutingAlgorithm(nn.Module):
    """Base of the routing objects. A subclass implements :meth:`forward` and says in class attributes what it is.

    ``settings`` are the arguments that build the same algorithm again for a layer of any size; a saved model's
    config.json holds them beside the name.

    Attributes:
        name: set by :func:`register_routing`.
        takes_bias: the sums get a learned bias inside the loop.
        uses_activations: the lower capsules are weighted by how present they are.
        uses_lower: the lower capsules themselves are needed besides their votes.
        squashes: the length of a capsule is its activation.
        normalizes: over what the coefficients of the trace sum to 1: ``"parents"``, ``"children"`` or ``"nothing"``.
        not_applicable: properties of :func:`torchcaps.testing.check_routing` that do not hold for this algorithm,
            each with the reason.
    """

    name: ClassVar[str] = ""
    takes_bias: ClassVar[bool] = False
    uses_activations: ClassVar[bool] = False
    uses_lower: ClassVar[bool] = False
    squashes: ClassVar[bool] = True
    normalizes: str = "parents"
    not_applicable: Mapping[str, str] = MappingProxyType({})

    settings: dict[str, Any]

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        if "iterations" in settings:
            check_iterations(settings["iterations"])
        if "squash" in settings:
            check_squash(settings["squash"])
        self.settings = settings

    @classmethod
    def for_layer(cls, sizes: LayerSizes, **settings: Any) -> Self:
        """The algorithm for a layer of these sizes; those without parameters fit every layer."""
        return cls(**settings)

    def forward(
        self,
        votes: Tensor,
        *,
        activations: Tensor | None = None,
        mask: Tensor | None = None,
        bias: Tensor | None = None,
        lower: Tensor | None = None,
        return_trace: bool = False,
    ) -> RoutingOutput:
        """Route.

        Shape:
            votes: ``[B, I, J, D]``. activations, mask: ``[B, I]``. bias: ``[J, D]``. lower: ``[B, I, P]``.
            Returns capsules ``[B, J, D]`` and activations ``[B, J]``.
        """
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Draw new start values; nothing to do without parameters."""

    def config(self) -> dict[str, Any]:
        """Name and settings, as a file can hold them."""
        return {"name": self.name, **self.settings}

    def extra_repr(self) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
