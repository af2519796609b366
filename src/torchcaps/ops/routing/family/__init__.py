"""Routing algorithms as functions on votes, one file each; ``naive`` beside them is their ground truth."""

from torchcaps.ops.routing.family.attention import attention_routing
from torchcaps.ops.routing.family.average import average_routing
from torchcaps.ops.routing.family.em import em_routing
from torchcaps.ops.routing.family.fixed_point import fixed_point_routing
from torchcaps.ops.routing.family.inverted_attention import inverted_attention_routing
from torchcaps.ops.routing.family.k_means import k_means_routing
from torchcaps.ops.routing.family.max_min import max_min_routing
from torchcaps.ops.routing.family.normalized import normalized_routing
from torchcaps.ops.routing.family.self_attention import self_attention_linear, self_attention_routing
from torchcaps.ops.routing.family.self_routing import gate_logits, self_routing
from torchcaps.ops.routing.family.vb import vb_routing

__all__ = [
    "attention_routing",
    "average_routing",
    "em_routing",
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
]
