"""The size of a network and of a file of weights before memory is taken for either."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import safe_open
from torch import Tensor
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from torchcaps.models.base import Model

__all__ = ["MOST_PARAMETERS", "check_weights", "weights_of"]

MOST_PARAMETERS = 10**9  # 4 GB as 32-bit floats
FLOATS = (
    "F16",
    "BF16",
    "F32",
    "F64",
)  # any of them is read into any other; whole numbers and the like only as they are
SAFETENSORS = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64}
SAFETENSORS |= {"I8": torch.int8, "I16": torch.int16, "I32": torch.int32, "I64": torch.int64, "U8": torch.uint8}
SAFETENSORS |= {"BOOL": torch.bool}


class _NoStartValues(TorchFunctionMode):
    """Leaves out what fills weights at random: without memory it does nothing, but imports a compiler for it."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (Tensor.normal_, Tensor.uniform_):
            return args[0]
        return func(*args, **(kwargs or {}))


def weights_of(model_class: type[Model], settings: Mapping[str, Any]) -> dict[str, Tensor] | None:
    """Weights of the network by name, without their memory; ``None`` for a class that cannot be built without."""
    try:
        with torch.device("meta"), _NoStartValues():
            weights = model_class(**settings).state_dict()
    except NotImplementedError:  # a network of the user's own that looks at its numbers while it is built
        return None
    except (RuntimeError, OverflowError) as error:
        if "meta" in str(error):  # the same
            return None
        raise ValueError(f"the network cannot be built: {str(error).splitlines()[0]}") from error
    if (count := sum(weight.numel() for weight in weights.values())) > MOST_PARAMETERS:
        largest = max(weights, key=lambda name: weights[name].numel())
        raise ValueError(
            f"the network would have {count:,} parameters, and {MOST_PARAMETERS:,} is the most; {largest} is "
            f"{'×'.join(map(str, weights[largest].shape))}. Choose smaller sizes, or weights that positions share"
        )
    return weights


def check_weights(file: Path, expected: Mapping[str, Tensor], strict: bool = True, exact: bool = False) -> None:
    """Raise a ``ValueError`` where the header of a safetensors file declares other tensors than these.

    Args:
        strict: every tensor must be there, and no other one.
        exact: of the same type, too; else any floating point type will do for another.
    """
    with safe_open(file, framework="pt") as opened:
        slices = {name: opened.get_slice(name) for name in opened.keys()}  # noqa: SIM118 - it is no mapping
        found = {name: (part.get_dtype(), list(part.get_shape())) for name, part in slices.items()}
    if strict and found.keys() != expected.keys():
        missing, unknown = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
        parts = [f"{what} {', '.join(names[:3])}" for what, names in (("without", missing), ("with", unknown)) if names]
        raise ValueError(f"it is {' and '.join(parts)}")
    for name in [name for name in expected if name in found]:
        dtype, shape = found[name]
        if shape != list(expected[name].shape):
            raise ValueError(f"{name} is {shape} there and {list(expected[name].shape)} in the network")
        same = SAFETENSORS.get(dtype) == expected[name].dtype
        if not (same or (not exact and dtype in FLOATS and expected[name].is_floating_point())):
            raise ValueError(f"{name} is {dtype} there and {str(expected[name].dtype).removeprefix('torch.')} here")
