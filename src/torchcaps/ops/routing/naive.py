"""The ground truth: Procedure 1, its relatives and Eqs. 1 to 3 as loops in float64, to be checked by eye.

Every fast version is compared with this one, in values and gradients. It is slow on purpose: nothing is
vectorised but the batch and the components of a vector, and it shares no code with the fast versions.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchcaps.ops.routing.options import RoutingOptions

__all__ = ["capsule_linear", "dynamic_routing"]


def squash(s: Tensor) -> Tensor:
    """Eq. 1 on ``[B, D]``."""
    squared = (s * s).sum(dim=1, keepdim=True)
    safe = torch.where(squared > 0, squared, 1.0)  # a zero vector stays zero, and so does its gradient
    return torch.where(squared > 0, squared / (1 + squared) * s / safe.sqrt(), 0.0 * s)


def unit(s: Tensor) -> Tensor:
    """``[B, D]`` at length 1; a zero vector stays zero, and so does its gradient."""
    squared = (s * s).sum(dim=1, keepdim=True)
    return torch.where(squared > 0, s / torch.where(squared > 0, squared, 1.0).sqrt(), 0.0 * s)


def coupling(logits: list[Tensor], leaky: bool) -> list[Tensor]:
    """Eq. 3: softmax over the parents j of one child; ``[B]`` each."""
    highest = torch.stack([*logits, torch.zeros_like(logits[0])]).amax(dim=0).detach()
    exponentials = [(b - highest).exp() for b in logits]
    total = sum(exponentials, start=torch.zeros_like(highest))
    if leaky:
        total = total + (0 - highest).exp()
    return [e / total for e in exponentials]


def route(votes: list[list[Tensor]], present: Tensor, bias: Tensor | None, options: RoutingOptions) -> Tensor:
    """Procedure 1. ``votes[i][j]`` is ``[B, D]``; ``present`` is ``[B, I]`` of 0 and 1. Returns ``[B, J, D]``."""
    I, J = len(votes), len(votes[0])
    B = len(present)
    logits = [[torch.zeros(B, dtype=torch.float64, device=present.device) for _ in range(J)] for _ in range(I)]
    outputs: list[Tensor] = []
    centres: list[Tensor] = []
    for iteration in range(1, options.iterations + 1):
        coefficients = [coupling(logits[i], options.leaky) for i in range(I)]
        if options.gradient == "last":
            coefficients = [[c.detach() for c in row] for row in coefficients]
        outputs, centres = [], []
        for j in range(J):
            s = sum(
                ((present[:, i] * coefficients[i][j]).unsqueeze(1) * votes[i][j] for i in range(I)),
                start=torch.zeros_like(votes[0][j]),
            )
            if bias is not None:
                s = s + bias[j]
            outputs.append(squash(s) if options.squashed else s)
            if options.centre == "direction":
                centres.append(options.sharpness * unit(s))
            elif options.centre == "total":
                centres.append(options.sharpness * (J + options.leaky) / s.shape[1] ** 0.5 * s)
            else:
                centres.append(squash(s))
        if iteration == options.iterations:
            break
        for i in range(I):
            for j in range(J):
                agreement = (votes[i][j] * centres[j]).sum(dim=1)
                logits[i][j] = logits[i][j] + agreement if options.centre == "sum" else agreement
    return torch.stack(outputs, dim=1)


def dynamic_routing(votes: Tensor, bias: Tensor | None, mask: Tensor | None, options: RoutingOptions) -> Tensor:
    """``votes`` ``[B, I, J, D]``, ``mask`` ``[B, I]`` → ``[B, J, D]`` in float64."""
    B, I, J, _ = votes.shape
    present = torch.ones(B, I, dtype=torch.float64, device=votes.device) if mask is None else mask.double()
    rows = [[votes[:, i, j].double() for j in range(J)] for i in range(I)]
    return route(rows, present, None if bias is None else bias.double(), options)


def capsule_linear(
    u: Tensor, weight: Tensor, bias: Tensor | None, mask: Tensor | None, options: RoutingOptions
) -> Tensor:
    """Eq. 2, û_{j|i} = W_ij u_i, then Procedure 1.

    ``u`` is ``[B, I, P]``, ``weight`` ``[I, J, D, P]`` or shared ``[J, D, P]``; returns ``[B, J, D]`` in float64.
    """
    B, I, _ = u.shape
    J = weight.shape[-3]
    present = torch.ones(B, I, dtype=torch.float64, device=u.device) if mask is None else mask.double()
    votes = []
    for i in range(I):
        W_i = weight[i] if weight.ndim == 4 else weight
        votes.append([u[:, i].double() @ W_i[j].double().T for j in range(J)])
    return route(votes, present, None if bias is None else bias.double(), options)
