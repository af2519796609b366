"""The ground truth of the family: each algorithm as loops over i and j in float64, to be checked by eye.

Only the batch and the components of a vector are vectorised; no code is shared with the fast versions. Masks and
defaults are left to those, so every argument must be given.
"""

from torchcaps.ops.routing.family.naive.agreement import (
    attention,
    average,
    fixed_point,
    max_min,
    normalized,
    self_attention,
)
from torchcaps.ops.routing.family.naive.clustering import em, inverted_attention, k_means, self_routing, vb

__all__ = [
    "attention",
    "average",
    "em",
    "fixed_point",
    "inverted_attention",
    "k_means",
    "max_min",
    "normalized",
    "self_attention",
    "self_routing",
    "vb",
]
