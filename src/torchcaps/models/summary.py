"""Layers, shapes, parameters and memory of a model, found on the meta device: nothing is computed."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from torchcaps.nn import CapsuleLinear
from torchcaps.ops.routing.backends import choose_backend
from torchcaps.ops.routing.eager import vote_buffer_bytes

if TYPE_CHECKING:
    from torchcaps.models.base import Model

__all__ = ["LayerSummary", "Summary", "summarize"]


@dataclass(frozen=True)
class LayerSummary:
    """One layer: its name, kind, output shape for a batch and number of parameters."""

    name: str
    kind: str
    output_shape: tuple[int, ...]
    parameters: int


@dataclass(frozen=True)
class Summary:
    """What :meth:`torchcaps.models.base.Model.summary` found; ``print`` shows it as a table.

    Attributes:
        state_bytes: parameters, their gradients and Adam's two averages.
        activation_bytes: what the forward pass keeps for the backward pass.
        working_bytes: the largest gradients alive at one time, or the votes being routed.
    """

    title: str
    batch_size: int
    layers: tuple[LayerSummary, ...]
    parameters: int
    state_bytes: int
    activation_bytes: int
    working_bytes: int

    @property
    def training_bytes(self) -> int:
        """Memory that a training step with Adam needs; libraries' own workspaces come on top."""
        return self.state_bytes + self.activation_bytes + self.working_bytes

    def __str__(self) -> str:
        from rich.console import Console
        from rich.table import Table

        table = Table(title=self.title, title_justify="left", caption_justify="left")
        table.add_column("layer")
        table.add_column("kind")
        table.add_column(f"output (batch {self.batch_size})", justify="right")
        table.add_column("parameters", justify="right")
        for layer in self.layers:
            shape = " × ".join(map(str, layer.output_shape))
            table.add_row(layer.name, layer.kind, shape, f"{layer.parameters:,}")
        table.add_section()
        table.add_row("total", "", "", f"{self.parameters:,}")
        table.caption = (
            f"A training step with Adam at batch {self.batch_size} needs about {_mib(self.training_bytes)}: "
            f"{_mib(self.state_bytes)} for weights, gradients and optimiser, "
            f"{_mib(self.activation_bytes)} kept for the backward pass, {_mib(self.working_bytes)} in work."
        )
        text = StringIO()
        Console(file=text, width=100).print(table)
        return text.getvalue().rstrip()


def summarize(model: Model, batch_size: int = 128) -> Summary:
    """Run one forward pass of shapes only and note what each layer makes and what autograd keeps."""
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {batch_size}")
    device = next(model.parameters()).device.type
    twin = copy.deepcopy(model).to("meta").train()
    layers: list[LayerSummary] = []
    output_bytes: list[int] = []
    vote_bytes: list[int] = []

    def note(name: str, layer: nn.Module) -> None:
        def hook(_module: nn.Module, inputs: Any, output: Any) -> None:
            output = getattr(output, "capsules", output)
            parameters = sum(p.numel() for p in layer.parameters())
            layers.append(LayerSummary(name, type(layer).__name__, tuple(output.shape), parameters))
            output_bytes.append(output.numel() * output.element_size())
            if isinstance(layer, CapsuleLinear) and _forms_votes(inputs[0], layer, device):
                vote_bytes.append(vote_buffer_bytes(inputs[0], layer.weights_for(inputs[0].shape[1]), device))

        layer.register_forward_hook(hook)

    for name, child in twin.named_children():
        note(name, child)
    activation_bytes = _bytes_kept_for_backward(twin, batch_size)
    return Summary(
        title=f"{type(model).__name__} for pictures {'×'.join(map(str, model.image_shape))}",
        batch_size=batch_size,
        layers=tuple(layers),
        parameters=sum(p.numel() for p in model.parameters()),
        state_bytes=4 * sum(p.numel() * p.element_size() for p in model.parameters()),
        activation_bytes=activation_bytes,
        # A layer's input and output gradients live together; the votes and those of the largest layer do not.
        working_bytes=max([2 * max(output_bytes), *vote_bytes]),
    )


def _forms_votes(u: Tensor, layer: CapsuleLinear, device: str) -> bool:
    """Whether this layer would hold votes on the model's own device; the fused kernels and one pass hold none."""
    if layer.fused is None or layer.fused.iterations == 1:
        return layer.fused is None
    probe = torch.empty(0, *u.shape[1:], device=device, dtype=u.dtype)
    return choose_backend(layer.backend, probe, layer.weights_for(u.shape[1]))[0] != "triton"


def _bytes_kept_for_backward(model: Model, batch_size: int) -> int:
    """Bytes of all different buffers that a forward pass saves, except the parameters."""
    parameters = {p.untyped_storage()._cdata for p in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in parameters:
            kept[storage._cdata] = storage  # holding the storage keeps its number from being given away again
        return tensor

    first = next(model.parameters())
    images = torch.zeros(batch_size, *model.image_shape, device=first.device, dtype=first.dtype)
    classes = torch.zeros(batch_size, dtype=torch.int64, device=first.device)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = model.training_outputs(images, classes)  # held until the count is done
    total = sum(storage.nbytes() for storage in kept.values())
    del outputs
    return total


def _mib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
