"""Layers with parameters."""

from torchcaps.nn.conv_capsules import ConvCapsules
from torchcaps.nn.convolution import PictureConv2d, WholeMapConv2d
from torchcaps.nn.decoder import ConvReconstructionDecoder, ReconstructionDecoder
from torchcaps.nn.deep import CapsuleStack, ResidualCapsules
from torchcaps.nn.linear import CapsuleLinear, Routing
from torchcaps.nn.losses import CapsNetLoss, CapsuleLoss, LossTerms, MarginLoss, SpreadLoss
from torchcaps.nn.masking import longest_class, mask_classes, top_classes
from torchcaps.nn.pose_capsules import PrimaryPoses
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
from torchcaps.nn.stem import ConvolutionStem

__all__ = [
    "AttentionRouting",
    "AverageRouting",
    "CapsNetLoss",
    "CapsuleLinear",
    "CapsuleLoss",
    "CapsuleStack",
    "ConvCapsules",
    "ConvReconstructionDecoder",
    "ConvolutionStem",
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
    "PrimaryPoses",
    "ReconstructionDecoder",
    "ResidualCapsules",
    "Routing",
    "RoutingAlgorithm",
    "SelfAttentionRouting",
    "SelfRouting",
    "SpreadLoss",
    "VBRouting",
    "WholeMapConv2d",
    "create_routing",
    "list_routings",
    "longest_class",
    "mask_classes",
    "register_routing",
    "top_classes",
]
