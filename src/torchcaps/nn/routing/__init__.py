"""Routing algorithms as objects that layers take: a name, settings and, for some, learned parameters."""

from torchcaps.nn.routing.agreement import (
    AttentionRouting,
    AverageRouting,
    DynamicRouting,
    FixedPointRouting,
    LeakyRouting,
    MaxMinRouting,
    NormalizedRouting,
)
from torchcaps.nn.routing.base import LayerSizes, RoutingAlgorithm
from torchcaps.nn.routing.clustering import EMRouting, KMeansRouting, VBRouting
from torchcaps.nn.routing.learned import InvertedAttentionRouting, SelfAttentionRouting, SelfRouting
from torchcaps.nn.routing.registry import create_routing, list_routings, register_routing, routing_config

__all__ = [
    "AttentionRouting",
    "AverageRouting",
    "DynamicRouting",
    "EMRouting",
    "FixedPointRouting",
    "InvertedAttentionRouting",
    "KMeansRouting",
    "LayerSizes",
    "LeakyRouting",
    "MaxMinRouting",
    "NormalizedRouting",
    "RoutingAlgorithm",
    "SelfAttentionRouting",
    "SelfRouting",
    "VBRouting",
    "create_routing",
    "list_routings",
    "register_routing",
    "routing_config",
]
