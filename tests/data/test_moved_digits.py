"""Moved pictures: exact where pixels fall on pixels, in the direction that is said, nothing lost on the canvas."""

from __future__ import annotations

import pytest
import torch

from torchcaps.data import sample_digits
from torchcaps.data.augment import Place
from torchcaps.data.moved_digits import MOVES, MovedDigits, move
from torchcaps.errors import DataError


def test_right_angles_are_exact_and_clockwise():
    split = sample_digits("test")
    images = split.images[:5]
    upright = MovedDigits(split, "rotate", 0).moved(images)
    assert torch.equal(upright, Place(40).evaluate(images))
    assert torch.equal(MovedDigits(split, "rotate", 90).moved(images), torch.rot90(upright, -1, (-2, -1)))
    assert torch.equal(MovedDigits(split, "rotate", -90).moved(images), torch.rot90(upright, 1, (-2, -1)))


def test_grey_levels_between_two_pixels_are_rounded_to_the_nearest():
    image = torch.tensor([[[[0, 1]]]], dtype=torch.uint8)
    assert move(image, "shift-x", torch.tensor([0.25])).tolist() == [[[[0, 1]]]]


def test_batches_hold_every_picture_once():
    split = sample_digits("test")
    batches = list(MovedDigits(split, "rotate", 30, size=44).batches(200))
    assert [len(batch.labels) for batch in batches] == [200, 200, 100]
    assert torch.equal(torch.cat([batch.labels for batch in batches]), split.labels)
    assert batches[0].images.shape == (200, 1, 44, 44)
    ink = torch.cat([batch.images for batch in batches]).sum((1, 2, 3)) / (split.images / 255).sum((1, 2, 3))
    torch.testing.assert_close(ink, torch.ones(500), rtol=0, atol=0.02)  # turning keeps the ink, but for rounding


def test_a_canvas_that_is_too_small():
    with pytest.raises(DataError, match="28×28 do not fit a canvas of 20×20"):
        MovedDigits(sample_digits("test"), "rotate", 10, size=20)


def test_shifts_go_right_and_down_and_leave_black():
    images = sample_digits("test").images[:4]
    right = move(images, "shift-x", torch.tensor([0.0, 1.0, 3.0, -2.0]))
    down = move(images, "shift-y", torch.tensor([0.0, 1.0, 3.0, -2.0]))
    for place, amount in enumerate((0, 1, 3)):
        assert torch.equal(right[place, :, :, amount:], images[place, :, :, : 28 - amount])
        assert torch.equal(down[place, :, amount:], images[place, :, : 28 - amount])
        assert not right[place, :, :, :amount].any()
        assert not down[place, :, :amount].any()
    assert torch.equal(right[3, :, :, :-2], images[3, :, :, 2:])


def test_scale_and_slant_match_a_plain_picture():
    square = torch.zeros(1, 1, 9, 9, dtype=torch.uint8)
    square[..., 3:6, 3:6] = 200
    assert move(square, "scale", torch.tensor([3.0]))[0, 0, 1:8, 1:8].min() == 200  # nine pixels wide, soft at its edge
    line = torch.zeros(1, 1, 9, 9, dtype=torch.uint8)
    line[..., 4] = 100
    slanted = move(line, "shear", torch.tensor([45.0]))[0, 0]
    assert torch.equal(slanted, 100 * torch.eye(9, dtype=torch.uint8).flip(1))  # the rows above the middle go right


@pytest.mark.parametrize("kind", MOVES)
def test_the_middle_of_every_slider_leaves_the_picture(kind):
    images = sample_digits("test").images[:3]
    amounts = torch.full((3,), 1.0 if kind == "scale" else 0.0)
    assert torch.equal(move(images, kind, amounts), images)


@pytest.mark.parametrize(
    ("kind", "amounts", "words"),
    [
        ("turn", [1.0, 1.0], "there is no move 'turn'; choose from rotate"),
        ("rotate", [1.0], r"an amount for each, got \[2, 1, 28, 28\] and \[1\]"),
        ("rotate", [1.0, float("nan")], "amounts must be finite"),
        ("scale", [1.0, 0.0], "above 0 for a scale"),
    ],
)
def test_moves_that_cannot_be(kind, amounts, words):
    with pytest.raises(DataError, match=words):
        move(sample_digits("test").images[:2], kind, torch.tensor(amounts))
