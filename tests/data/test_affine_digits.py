"""Digits on 40×40: the placed training set and the affnist-like generator, against loops and by their properties."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
import torch
from PIL import Image

import torchcaps.data.affine_digits
import torchcaps.data.warp
from torchcaps.data import TestSplit, TrainSplit, sample_digits
from torchcaps.data.affine_digits import AffineDigits, place_on_canvas
from torchcaps.data.random import RandomStream
from torchcaps.data.warp import affine_coordinates, draw_affine, resample
from torchcaps.errors import DataError

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def bilinear_by_loop(image: np.ndarray, y: float, x: float) -> float:
    """Weighted mean of the four pixels around a place, in float64; black outside."""
    total = 0.0
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < image.shape[0] and 0 <= column < image.shape[1]:
                total += (1 - abs(y - row)) * (1 - abs(x - column)) * float(image[row, column])
    return total


def test_resampling_matches_a_loop() -> None:
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (3, 2, 5, 7), dtype=np.uint8)
    y, x = generator.uniform(-3, 8, (3, 4, 6)), generator.uniform(-3, 10, (3, 4, 6))
    got = resample(torch.from_numpy(images), torch.from_numpy(y), torch.from_numpy(x))
    as_float = resample(torch.from_numpy(images).double(), torch.from_numpy(y), torch.from_numpy(x))
    for b, c, row, column in np.ndindex(3, 2, 4, 6):
        expected = bilinear_by_loop(images[b, c], y[b, row, column], x[b, row, column])
        # A coordinate is off by at most 1/512 pixel in each direction, and neighbours by at most 255 levels.
        assert abs(float(as_float[b, c, row, column]) - expected) <= 2 * 255 / 512 + 1e-9
        assert abs(float(got[b, c, row, column]) - expected) <= 2 * 255 / 512 + 0.5 + 1e-9


def cubic_weight(distance: float) -> float:
    """Keys' kernel with a = −1/2."""
    d = abs(distance)
    if d >= 2:
        return 0.0
    return 1.5 * d**3 - 2.5 * d**2 + 1 if d < 1 else -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2


def test_sharp_resampling_matches_a_loop() -> None:
    generator = np.random.default_rng(2)
    images = generator.integers(0, 256, (3, 2, 5, 7), dtype=np.uint8)
    y, x = generator.uniform(-4, 9, (3, 9, 11)), generator.uniform(-4, 11, (3, 9, 11))
    y, x = (
        np.round(y * 256) / 256,
        np.round(x * 256) / 256,
    )  # what fixed point can hold, so that only weights are rounded
    places = torch.from_numpy(y), torch.from_numpy(x)
    got = resample(torch.from_numpy(images), *places, sharp=True)
    as_float = resample(torch.from_numpy(images).double() / 255, *places, sharp=True)
    # Four weights of each axis are off by at most 1/512, one by three times that; the others of the pair sum to 1.25.
    tolerance = 255 * 2 * 1.25 * 6 / 512
    for b, c, row, column in np.ndindex(3, 2, 9, 11):
        expected = sum(
            cubic_weight(y[b, row, column] - i) * cubic_weight(x[b, row, column] - j) * float(images[b, c, i, j])
            for i, j in np.ndindex(5, 7)
        )
        expected = min(255.0, max(0.0, expected))
        assert abs(255 * float(as_float[b, c, row, column]) - expected) <= tolerance
        assert abs(int(got[b, c, row, column]) - 255 * float(as_float[b, c, row, column])) <= 0.5 + 1e-9


def test_sharp_resampling_is_what_pillow_reads_between_pixels() -> None:
    """Enlarged four times by Pillow's bicubic filter, which has the same kernel; edges differ."""
    picture = np.random.default_rng(3).integers(80, 176, (12, 12), dtype=np.uint8)  # no overshoot is cut off
    enlarged = np.asarray(Image.fromarray(picture).resize((48, 48), Image.Resampling.BICUBIC)).astype(int)
    place = (torch.arange(48, dtype=torch.float64) + 0.5) / 4 - 0.5
    y, x = place[:, None].expand(1, 48, 48), place.expand(1, 48, 48)
    ours = resample(torch.from_numpy(picture)[None, None], y, x, sharp=True)[0, 0].numpy().astype(int)
    assert np.abs(ours - enlarged)[8:40, 8:40].max() <= 2  # eighths of a pixel need weights of 1/1024 and finer


@pytest.mark.parametrize("sharp", [False, True])
def test_resampling_at_the_pixels_is_the_picture(sharp: bool) -> None:
    images = torch.from_numpy(np.random.default_rng(1).integers(0, 256, (2, 1, 6, 9), dtype=np.uint8))
    rows = torch.arange(6.0)[:, None].expand(2, 6, 9)
    columns = torch.arange(9.0).expand(2, 6, 9)
    assert torch.equal(resample(images, rows, columns, sharp), images)
    assert int(resample(images, rows + 100, columns, sharp).max()) == 0
    assert int(resample(images, rows, columns - 100, sharp).max()) == 0


def test_affine_coordinates_undo_the_matrix() -> None:
    matrix = draw_affine(RandomStream(0, "test"), torch.arange(50), 20, 0.2, (0.8, 1.2))
    source_centre = torch.tensor([3.0, 5.0], dtype=torch.float64)
    target_centre = torch.rand(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 9
    y, x = affine_coordinates(matrix, source_centre, target_centre, (6, 4))
    source = torch.stack((y, x), dim=-1) - source_centre  # [B, H, W, 2]
    target = torch.einsum("Bij,BHWj->BHWi", matrix, source) + target_centre[:, None, None]
    rows, columns = torch.meshgrid(torch.arange(6.0), torch.arange(4.0), indexing="ij")
    expected = torch.stack((rows, columns), dim=-1).double().expand_as(target)
    torch.testing.assert_close(target, expected)


def test_matrix_is_rotation_times_shear_times_scale() -> None:
    stream, counter = RandomStream(5, "matrix"), torch.arange(2000)
    matrix = draw_affine(stream, counter, degrees=20, shear=0.2, scale=(0.8, 1.2))
    unit = stream.uniform(counter, lanes=4).double().numpy()
    for b in range(0, 2000, 97):
        angle, slant = math.radians((2 * unit[b, 0] - 1) * 20), (2 * unit[b, 1] - 1) * 0.2
        rotation = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
        scale = np.diag(0.8 + 0.4 * unit[b, 2:])
        expected = rotation @ np.array([[1, 0], [slant, 1]]) @ scale
        np.testing.assert_allclose(matrix[b].numpy(), expected, atol=1e-12)
    determinant = torch.linalg.det(matrix)
    assert bool(((determinant >= 0.64) & (determinant <= 1.44)).all())


def test_no_ink_is_lost() -> None:
    digits = AffineDigits(sample_digits("test"), seed=2)
    indices = torch.arange(0, len(digits), 23)
    inside = digits.examples(indices).images
    # The same copies on a canvas with a border of 10 more on each side: the border stays black.
    matrix, translation = digits.transforms(indices)
    middle = torch.tensor([13.5, 13.5], dtype=torch.float64)
    coordinates = affine_coordinates(matrix, middle, translation + 10, (60, 60))
    wide = resample(sample_digits("test").images[indices // 32], *coordinates)
    assert torch.equal(wide[..., 10:50, 10:50], inside)
    assert int(wide.sum()) == int(inside.sum())
    # And the places are used up to the edge, not only in the middle.
    ink = (inside != 0).any(0)[0]
    assert bool(ink.any(1)[1] & ink.any(1)[38] & ink.any(0)[1] & ink.any(0)[38])


def test_a_picture_full_of_ink_is_made_to_fit() -> None:
    full = TestSplit(torch.full((4, 1, 28, 28), 255, dtype=torch.uint8), torch.arange(4))
    digits = AffineDigits(full, size=30)
    indices = torch.arange(len(digits))
    matrix, translation = digits.transforms(indices)
    middle = torch.tensor([13.5, 13.5], dtype=torch.float64)
    wide = resample(full.images[indices // 32], *affine_coordinates(matrix, middle, translation + 9, (48, 48)))
    inside = digits.examples(indices).images
    assert int(wide.sum()) == int(inside.sum())
    assert int(inside.amax((1, 2, 3)).min()) == 255


def test_ink_keeps_the_margin_and_uses_the_rest() -> None:
    digits = AffineDigits(sample_digits("test"), margin=4)
    ink = (digits.examples(torch.arange(0, len(digits), 23)).images != 0).any(0)[0]
    inner = ink[4:36, 4:36]
    assert int(ink.sum()) == int(inner.sum())
    assert bool(inner.any(1)[1] & inner.any(1)[-2] & inner.any(0)[1] & inner.any(0)[-2])


@pytest.mark.parametrize("margin", [-1.0, 19.5, math.nan])
def test_a_margin_that_leaves_no_room(margin) -> None:
    with pytest.raises(DataError, match="leaves no room on 40×40"):
        AffineDigits(sample_digits("test"), margin=margin)


def test_copies_are_definite_and_differ() -> None:
    digits = AffineDigits(sample_digits("test"))
    whole = digits.examples(torch.arange(64))
    assert torch.equal(digits.examples(torch.arange(20, 33)).images, whole.images[20:33])
    assert len(torch.unique(whole.images.flatten(1), dim=0)) == 64
    assert torch.equal(whole.labels, sample_digits("test").labels[:2].repeat_interleave(32))
    other = AffineDigits(sample_digits("test"), seed=1).examples(torch.arange(64))
    assert not torch.equal(other.images, whole.images)


def test_batches_cover_every_copy_in_order() -> None:
    split = TestSplit(sample_digits("test").images[:3], sample_digits("test").labels[:3])
    digits = AffineDigits(split, copies=5)
    batches = list(digits.batches(4))
    assert [len(batch.labels) for batch in batches] == [4, 4, 4, 3]
    together = torch.cat([batch.images for batch in batches])
    torch.testing.assert_close(together * 255, digits.examples(torch.arange(15)).images.float())


def test_a_black_picture_stays_black() -> None:
    black = TestSplit(torch.zeros(1, 1, 28, 28, dtype=torch.uint8), torch.tensor([0]))
    assert int(AffineDigits(black).examples(torch.arange(32)).images.max()) == 0


def test_placed_digits_keep_their_ink_and_reach_all_places() -> None:
    split = sample_digits("train")
    marked = TrainSplit(torch.ones_like(split.images), split.labels, attributes=split.attributes)
    placed = place_on_canvas(marked, size=40, seed=3)
    assert type(placed) is TrainSplit
    assert placed.images.shape == (1000, 1, 40, 40)
    assert torch.equal(placed.images.sum((1, 2, 3)), torch.full((1000,), 28 * 28))
    tops = placed.images[:, 0].amax(2).argmax(1)
    lefts = placed.images[:, 0].amax(1).argmax(1)
    for places in (tops, lefts):
        assert torch.bincount(places, minlength=13).shape == (13,)
        assert int(torch.bincount(places, minlength=13).min()) > 40  # 77 expected at each of the 13
    assert torch.equal(placed.attributes["original_index"], split.attributes["original_index"])


def test_placed_picture_is_the_picture_at_one_place() -> None:
    split = sample_digits("test")
    placed = place_on_canvas(split, size=40)
    assert type(placed) is TestSplit
    for number in range(0, 500, 50):
        found = [
            (top, left)
            for top in range(13)
            for left in range(13)
            if torch.equal(placed.images[number, 0, top : top + 28, left : left + 28], split.images[number, 0])
        ]
        assert len(found) == 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(DataError, match="fit the canvas"):
        place_on_canvas(sample_digits("train"), size=20)
    with pytest.raises(DataError, match="at least one copy"):
        AffineDigits(sample_digits("test"), copies=0)


@pytest.mark.gpu
@needs_cuda
def test_same_bytes_on_the_gpu() -> None:
    indices = torch.arange(0, 16_000, 7)
    on_cpu, on_gpu = (
        AffineDigits(sample_digits("test"), device=device).examples(indices) for device in ("cpu", "cuda")
    )
    assert torch.equal(on_gpu.images.cpu(), on_cpu.images)


@pytest.mark.parametrize("module", [torchcaps.data.affine_digits, torchcaps.data.warp])
def test_examples_in_the_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
