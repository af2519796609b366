"""What a model returns. ``scores`` is common to all: one number in [0, 1] for each class."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps.ops import RoutingTrace

__all__ = ["CapsNetOutput", "ClassifierOutput"]


@dataclass
class CapsNetOutput:
    """Class capsules and their lengths.

    ``lengths`` are the scores of the classes in every case: where a routing does not squash its capsules, as EM, they
    are the activations that it computes instead.

    Shape:
        capsules: ``[B, J, D]``. lengths: ``[B, J]`` in [0, 1]. trace: when it was asked for.
    """

    capsules: Tensor
    lengths: Tensor
    trace: RoutingTrace | None = None

    @property
    def scores(self) -> Tensor:
        return self.lengths


@dataclass
class ClassifierOutput:
    """Logits of an ordinary network and the probabilities made from them.

    Shape:
        logits, probabilities: ``[B, J]``.
    """

    logits: Tensor
    probabilities: Tensor

    @property
    def scores(self) -> Tensor:
        return self.probabilities


with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # torch 2.6 warns of a function of its own
    for _type in (RoutingTrace, CapsNetOutput, ClassifierOutput):
        torch.export.register_dataclass(_type)
