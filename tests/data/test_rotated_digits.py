"""Turned pictures: exact at right angles, clockwise for positive degrees, nothing lost on the canvas."""

from __future__ import annotations

import pytest
import torch

from torchcaps.data import sample_digits
from torchcaps.data.augment import Place
from torchcaps.data.rotated_digits import RotatedDigits
from torchcaps.errors import DataError


def test_right_angles_are_exact_and_clockwise():
    split = sample_digits("test")
    images = split.images[:5]
    upright = RotatedDigits(split, 0).turned(images)
    assert torch.equal(upright, Place(40).evaluate(images))
    assert torch.equal(RotatedDigits(split, 90).turned(images), torch.rot90(upright, -1, (-2, -1)))
    assert torch.equal(RotatedDigits(split, -90).turned(images), torch.rot90(upright, 1, (-2, -1)))


def test_batches_hold_every_picture_once():
    split = sample_digits("test")
    batches = list(RotatedDigits(split, 30, size=44).batches(200))
    assert [len(batch.labels) for batch in batches] == [200, 200, 100]
    assert torch.equal(torch.cat([batch.labels for batch in batches]), split.labels)
    assert batches[0].images.shape == (200, 1, 44, 44)
    ink = torch.cat([batch.images for batch in batches]).sum((1, 2, 3)) / (split.images / 255).sum((1, 2, 3))
    torch.testing.assert_close(ink, torch.ones(500), rtol=0, atol=0.02)  # turning keeps the ink, but for rounding


def test_a_canvas_that_is_too_small():
    with pytest.raises(DataError, match="28×28 do not fit a canvas of 20×20"):
        RotatedDigits(sample_digits("test"), 10, size=20)
