"""Entropy and parents of a child: even shares, a tree, masks, and every layer of a deep network."""

from __future__ import annotations

import math

import pytest
import torch

import torchcaps
from torchcaps.eval import measure_couplings, routing_traces
from torchcaps.eval.couplings import coupling_sums
from torchcaps.eval.figures import costs_figure, parents_figure, to_png
from torchcaps.ops import RoutingTrace

SMALL = {"conv_channels": 4, "primary_types": 2, "decoder": "none"}


def trace_of(coefficients: torch.Tensor) -> RoutingTrace:
    return RoutingTrace(torch.zeros_like(coefficients), coefficients, torch.zeros(1, 1, 1, 1))


def means(coefficients: torch.Tensor) -> tuple[list[float], list[float]]:
    entropy, parents, count = coupling_sums(trace_of(coefficients))
    return (entropy / count).tolist(), (parents / count).tolist()


def test_from_even_shares_to_a_tree():
    even, tree = torch.full((1, 2, 5, 4), 0.25), torch.eye(4)[torch.arange(10) % 4].reshape(1, 2, 5, 4)
    entropy, parents = means(torch.cat([even, tree]))
    assert entropy == pytest.approx([math.log(4), 0])
    assert parents == pytest.approx([4, 1])


def test_size_and_sign_do_not_matter_and_masked_children_do_not_count():
    shares = torch.rand(2, 3, 6, 5)
    expected = means(shares)
    assert means(-7 * shares) == (pytest.approx(expected[0]), pytest.approx(expected[1]))
    masked = torch.cat([shares, torch.zeros(2, 3, 4, 5)], dim=2)
    assert means(masked) == (pytest.approx(expected[0]), pytest.approx(expected[1]))


def test_it_is_the_entropy_of_the_trace_where_shares_sum_to_one():
    _, trace = torchcaps.ops.dynamic_routing(torch.randn(3, 7, 4, 8), return_trace=True)
    entropy, _, count = coupling_sums(trace)
    torch.testing.assert_close(entropy / count, trace.entropy().mean(dim=1).double())


def test_every_layer_is_looked_at():
    torch.manual_seed(0)
    images = torch.rand(4, 1, 28, 28)
    matrix = torchcaps.create_model("matrix-capsules", A=4, B=2, C=3, D=2).eval()
    traces = routing_traces(matrix, images)
    assert list(traces) == ["first", "second", "classes"]
    torch.testing.assert_close(traces["classes"].coefficients, matrix(images, return_trace=True).trace.coefficients)
    couplings = measure_couplings(matrix, images.split(3))
    assert [layer.upper for layer in couplings.values()] == [3, 2, 10]
    for layer in couplings.values():
        assert len(layer.entropy) == len(layer.parents) == 2
        assert layer.parents[0] == pytest.approx(layer.upper)  # nothing is decided before the first iteration
        assert 1 <= layer.parents[1] < layer.upper
    whole = measure_couplings(matrix, [images])
    assert whole["first"].entropy == pytest.approx(couplings["first"].entropy)
    deep = torchcaps.create_model("capsnet-deep", channels=4, types=(2, 2), depth=1, decoder="none").eval()
    assert len(routing_traces(deep, images)) == 5
    assert not deep.classes._forward_pre_hooks


def test_a_network_in_training_is_looked_at_and_left_as_it_was():
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", stem=[4, 4], capsule_dropout=0.5, **SMALL).train()
    model.conv.norms[1].eval()  # frozen by its owner
    before = {name: value.clone() for name, value in model.state_dict().items()}
    images = torch.rand(4, 1, 28, 28)
    first, second = (measure_couplings(model, [images]) for _ in range(2))
    assert first == second  # nothing is dropped
    torch.testing.assert_close(model.state_dict(), before)
    assert model.training
    assert not model.conv.norms[1].training


@pytest.mark.parametrize("routing", torchcaps.list_routings())
def test_every_routing_has_couplings(routing):
    torch.manual_seed(0)
    model = torchcaps.create_model("capsnet", routing=routing, **SMALL).eval()
    (layer,) = measure_couplings(model, [torch.rand(2, 1, 28, 28)]).values()
    assert all(1 - 1e-9 <= parents <= 10 + 1e-9 for parents in layer.parents)


def test_costs_have_a_bar_with_its_number_and_a_dash_where_unknown():
    panels = {"images/s": {"dynamic": 134702.6, "em": None}, "peak memory in MiB": {"dynamic": 268.0, "em": 458.0}}
    speed, memory = costs_figure(panels).axes
    assert [text.get_text() for text in speed.texts] == ["134,703", "–"]
    assert [bar.get_width() for bar in speed.patches] == [134702.6, 0.0]
    assert [text.get_text() for text in memory.texts] == ["268", "458"]
    assert [label.get_text() for label in speed.get_yticklabels()] == ["dynamic", "em"]


@pytest.mark.parametrize("cost", [0.0, 1.0, 2e5])
def test_a_comparison_of_one_can_be_drawn(cost):
    assert to_png(costs_figure({"images/s": {"alone": cost}}), 20).startswith(b"\x89PNG")
    assert to_png(parents_figure({"alone": [10.0]}, 10), 20).startswith(b"\x89PNG")
