"""Errors for wrong arguments: what was expected, what came, what to do."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["check_linear", "check_mask", "check_number", "check_shape", "check_sizes", "inside_transform"]


def check_linear(u: Tensor, weight: Tensor) -> None:
    if u.ndim != 3 or not u.is_floating_point():
        raise ValueError(f"lower capsules must be floating point [B, I, P], got {u.dtype} {list(u.shape)}")
    if weight.ndim not in (3, 4):
        raise ValueError(f"weight must be [I, J, D, P], or [J, D, P] when shared, got {list(weight.shape)}")
    if u.shape[2] != weight.shape[-1]:
        raise ValueError(
            f"lower capsules have {u.shape[2]} dimensions, but the weight {list(weight.shape)} "
            f"expects {weight.shape[-1]}"
        )
    if weight.ndim == 4 and weight.shape[0] != u.shape[1]:
        raise ValueError(
            f"the weight is for {weight.shape[0]} lower capsules, got {u.shape[1]}; "
            "share it ([J, D, P]) to take any number of them"
        )
    check_sizes(I=u.shape[1], J=weight.shape[-3], D=weight.shape[-2], P=u.shape[2])


def check_sizes(**sizes: int) -> None:
    for letter, size in sizes.items():
        if size < 1:
            raise ValueError(f"routing needs {letter} ≥ 1, got {letter} = {size}")


def check_number(name: str, value: float, above: float = -math.inf) -> None:
    # A compiler cannot trace math.isfinite, nor torch 2.6's a union of types.
    if not isinstance(value, (int, float)) or not above < value < math.inf:
        raise ValueError(f"{name} must be a finite number{'' if above < 0 else f' above {above}'}, got {value!r}")


def check_shape(name: str, x: Tensor | None, **sizes: int) -> None:
    """An argument that is given has these sizes, named by their letters."""
    if x is not None and tuple(x.shape) != tuple(sizes.values()):
        raise ValueError(f"{name} must be [{', '.join(sizes)}] = {list(sizes.values())}, got {list(x.shape)}")


def check_mask(mask: Tensor, B: int, I: int) -> Tensor:
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be bool, true where a lower capsule is present, got {mask.dtype}; write mask > 0")
    if tuple(mask.shape) not in ((B, I), (I,)):
        raise ValueError(f"mask must be [B, I] = [{B}, {I}] or [{I}], got {list(mask.shape)}")
    mask = mask.expand(B, I)
    # Looking at the values waits for the device, which a compiled or captured step must not do; vmap has none to show.
    unseen = torch.compiler.is_compiling() or mask.is_meta or _capturing(mask) or inside_transform()
    if not unseen and not bool(mask.any(dim=1).all()):
        empty = (~mask.any(dim=1)).nonzero().flatten().tolist()
        raise ValueError(
            f"no lower capsule is left in example {empty[0]} ({len(empty)} such of {B}); "
            "drop these examples or keep at least one capsule in each"
        )
    return mask


def inside_transform() -> bool:
    """Whether ``torch.func`` (vmap, grad, jvp) is at work, which sees through plain tensor operations only."""
    return torch._C._are_functorch_transforms_active()


def _capturing(x: Tensor) -> bool:
    return x.is_cuda and torch.cuda.is_current_stream_capturing()
