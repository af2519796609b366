"""Functions on tensors, without parameters: the one source of truth for layers, reports and the page."""

from torchcaps.ops.losses import margin_loss, multi_hot, reconstruction_loss
from torchcaps.ops.routing import RoutingTrace, capsule_linear, dynamic_routing, explain_backend, votes
from torchcaps.ops.squash import capsule_lengths, squash

__all__ = [
    "RoutingTrace",
    "capsule_lengths",
    "capsule_linear",
    "dynamic_routing",
    "explain_backend",
    "margin_loss",
    "multi_hot",
    "reconstruction_loss",
    "squash",
    "votes",
]
