from torchcaps.ops.routing.backends import explain_backend
from torchcaps.ops.routing.dynamic import capsule_linear, dynamic_routing, votes
from torchcaps.ops.routing.trace import RoutingTrace

__all__ = ["RoutingTrace", "capsule_linear", "dynamic_routing", "explain_backend", "votes"]
