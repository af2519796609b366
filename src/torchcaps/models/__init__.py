"""Whole networks, by class or by name."""

from typing import TYPE_CHECKING

from torchcaps._lazy import imported_on_demand

if TYPE_CHECKING:
    from torchcaps.models.base import Model
    from torchcaps.models.baselines import BaselineCNN, MultiBaselineCNN, SmallCNN
    from torchcaps.models.capsnet import CapsNet
    from torchcaps.models.capsule_model import CapsuleModel
    from torchcaps.models.deep import DeepCapsNet
    from torchcaps.models.efficient import EfficientCapsNet
    from torchcaps.models.export import export_onnx
    from torchcaps.models.matrix_capsules import MatrixCapsules
    from torchcaps.models.output import CapsNetOutput, ClassifierOutput
    from torchcaps.models.presets import PRESETS, Preset, get_preset
    from torchcaps.models.registry import create_model, from_pretrained, list_models, register_model
    from torchcaps.models.shipped import list_pretrained
    from torchcaps.models.summary import Summary

__all__ = [
    "PRESETS",
    "BaselineCNN",
    "CapsNet",
    "CapsNetOutput",
    "CapsuleModel",
    "ClassifierOutput",
    "DeepCapsNet",
    "EfficientCapsNet",
    "MatrixCapsules",
    "Model",
    "MultiBaselineCNN",
    "Preset",
    "SmallCNN",
    "Summary",
    "create_model",
    "export_onnx",
    "from_pretrained",
    "get_preset",
    "list_models",
    "list_pretrained",
    "register_model",
]

_HOME = {
    "BaselineCNN": "baselines",
    "CapsNet": "capsnet",
    "CapsNetOutput": "output",
    "CapsuleModel": "capsule_model",
    "ClassifierOutput": "output",
    "DeepCapsNet": "deep",
    "EfficientCapsNet": "efficient",
    "MatrixCapsules": "matrix_capsules",
    "Model": "base",
    "MultiBaselineCNN": "baselines",
    "PRESETS": "presets",
    "Preset": "presets",
    "SmallCNN": "baselines",
    "Summary": "summary",
    "create_model": "registry",
    "export_onnx": "export",
    "from_pretrained": "registry",
    "get_preset": "presets",
    "list_models": "registry",
    "list_pretrained": "shipped",
    "register_model": "registry",
}
__getattr__, __dir__ = imported_on_demand(__name__, _HOME, __all__)
