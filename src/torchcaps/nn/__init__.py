"""Layers with parameters."""

from torchcaps.nn.convolution import PictureConv2d
from torchcaps.nn.decoder import ConvReconstructionDecoder, ReconstructionDecoder
from torchcaps.nn.linear import CapsuleLinear, Routing
from torchcaps.nn.losses import CapsNetLoss, LossTerms, MarginLoss
from torchcaps.nn.masking import longest_class, mask_classes, top_classes
from torchcaps.nn.primary import PrimaryCapsules
from torchcaps.nn.routing import (
    AttentionRouting,
    AverageRouting,
    DynamicRouting,
    EMRouting,
    FixedPointRouting,
    InvertedAttentionRouting,
    KMeansRouting,
    LayerSizes,
    LeakyRouting,
    MaxMinRouting,
    NormalizedRouting,
    RoutingAlgorithm,
    SelfAttentionRouting,
    SelfRouting,
    VBRouting,
    create_routing,
    list_routings,
    register_routing,
)

__all__ = [
    "AttentionRouting",
    "AverageRouting",
    "CapsNetLoss",
    "CapsuleLinear",
    "ConvReconstructionDecoder",
    "DynamicRouting",
    "EMRouting",
    "FixedPointRouting",
    "InvertedAttentionRouting",
    "KMeansRouting",
    "LayerSizes",
    "LeakyRouting",
    "LossTerms",
    "MarginLoss",
    "MaxMinRouting",
    "NormalizedRouting",
    "PictureConv2d",
    "PrimaryCapsules",
    "ReconstructionDecoder",
    "Routing",
    "RoutingAlgorithm",
    "SelfAttentionRouting",
    "SelfRouting",
    "VBRouting",
    "create_routing",
    "list_routings",
    "longest_class",
    "mask_classes",
    "register_routing",
    "top_classes",
]
