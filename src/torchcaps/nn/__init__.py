"""Layers with parameters."""

from torchcaps.nn.convolution import PictureConv2d
from torchcaps.nn.decoder import ConvReconstructionDecoder, ReconstructionDecoder
from torchcaps.nn.linear import CapsuleLinear, Routing
from torchcaps.nn.losses import CapsNetLoss, LossTerms, MarginLoss
from torchcaps.nn.masking import longest_class, mask_classes, top_classes
from torchcaps.nn.primary import PrimaryCapsules

__all__ = [
    "CapsNetLoss",
    "CapsuleLinear",
    "ConvReconstructionDecoder",
    "LossTerms",
    "MarginLoss",
    "PictureConv2d",
    "PrimaryCapsules",
    "ReconstructionDecoder",
    "Routing",
    "longest_class",
    "mask_classes",
    "top_classes",
]
