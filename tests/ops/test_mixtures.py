"""EM and variational Bayes take spreads about a fixed centre: derivatives of both orders stay those of the formula."""

import pytest
import torch

from torchcaps import ops


@pytest.mark.parametrize("routing", [ops.em_routing, ops.vb_routing], ids=["em", "vb"])
def test_first_and_second_derivatives(routing):
    generator = torch.Generator().manual_seed(0)

    def numbers(*shape):
        return torch.rand(*shape, generator=generator, dtype=torch.float64, requires_grad=True)

    def routed(votes, beta, activations):
        return tuple(routing(votes, beta, -beta, activations, iterations=2, standardize=True)[:2])

    inputs = (numbers(1, 4, 2, 2), numbers(2), numbers(1, 4))
    assert torch.autograd.gradcheck(routed, inputs)
    assert torch.autograd.gradgradcheck(routed, inputs)
