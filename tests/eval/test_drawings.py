"""Fig. 4: one dimension moves, everything else stays."""

from __future__ import annotations

import math

import pytest
import torch

import torchcaps
from torchcaps.data import sample_digits
from torchcaps.errors import TorchcapsError
from torchcaps.eval import coupling_entropy, dimension_grid, draw, load_model
from torchcaps.eval.drawings import TWEAKS, draw_named, drawing_model, tweak_dimensions


def test_steps_are_those_of_the_paper():
    assert TWEAKS == (-0.25, -0.2, -0.15, -0.1, -0.05, 0.0, 0.05, 0.1, 0.15, 0.2, 0.25)


def test_exactly_one_number_moves():
    capsules = torch.randn(3, 4)
    moved = tweak_dimensions(capsules, 2)
    assert moved.shape == (4, 11, 3, 4)
    for dimension in range(4):
        for place, step in enumerate(TWEAKS):
            expected = capsules.clone()
            expected[2, dimension] += step
            torch.testing.assert_close(moved[dimension, place], expected)


def test_the_grid_is_what_the_decoder_draws(small_run):
    model = load_model(small_run)
    image = sample_digits("test").images[5] / 255
    grid = dimension_grid(model, image, 5)
    assert grid.shape == (16, 11, 1, 28, 28)
    middle = draw(model, image[None], torch.tensor([5]))[0]
    for dimension in range(16):
        torch.testing.assert_close(grid[dimension, 5], middle)
    with torch.no_grad():
        capsules = model(image[None]).capsules
        capsules[0, 5, 3] -= 0.25
        torch.testing.assert_close(grid[3, 0], model.reconstruct(capsules, torch.tensor([5]))[0])
    with pytest.raises(TorchcapsError, match="classes 0 … 9, not 10"):
        dimension_grid(model, image, 10)


def test_two_longest_are_drawn_alone_and_laid_over_each_other(small_run):
    model = load_model(small_run)
    images = sample_digits("test").images[:3] / 255
    named, drawn = draw_named(model, images, 2)
    assert torch.equal(named, model(images).lengths.topk(2, dim=1).indices)
    expected = draw(model, images, named[:, 0]) + draw(model, images, named[:, 1])
    torch.testing.assert_close(drawn, expected.clamp(max=1))


def test_entropy_starts_even_and_falls(small_run):
    entropy = coupling_entropy(load_model(small_run), sample_digits("test").images[:20] / 255)
    assert entropy.shape == (3, 20)
    torch.testing.assert_close(entropy[0], torch.full((20,), math.log(10)))
    means = entropy.mean(1)
    assert means[0] > means[1] > means[2]


def test_models_that_cannot_draw():
    with pytest.raises(TorchcapsError, match="SmallCNN has no capsules"):
        drawing_model(torchcaps.create_model("small-cnn", channels=4))
    blind = torchcaps.create_model("capsnet", conv_channels=4, primary_types=2, decoder="none")
    with pytest.raises(TorchcapsError, match="without a decoder"):
        drawing_model(blind)
