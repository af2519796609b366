from torchcaps.ops.routing.backends import explain_backend
from torchcaps.ops.routing.dynamic import capsule_linear, dynamic_routing, votes
from torchcaps.ops.routing.family import (
    attention_routing,
    average_routing,
    em_routing,
    fixed_point_routing,
    gate_logits,
    inverted_attention_routing,
    k_means_routing,
    max_min_routing,
    normalized_routing,
    self_attention_linear,
    self_attention_routing,
    self_routing,
    vb_routing,
)
from torchcaps.ops.routing.output import RoutingOutput
from torchcaps.ops.routing.trace import RoutingTrace

__all__ = [
    "RoutingOutput",
    "RoutingTrace",
    "attention_routing",
    "average_routing",
    "capsule_linear",
    "dynamic_routing",
    "em_routing",
    "explain_backend",
    "fixed_point_routing",
    "gate_logits",
    "inverted_attention_routing",
    "k_means_routing",
    "max_min_routing",
    "normalized_routing",
    "self_attention_linear",
    "self_attention_routing",
    "self_routing",
    "vb_routing",
    "votes",
]
