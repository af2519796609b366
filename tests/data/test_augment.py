"""Augmentations: against loops, by their properties, and by name."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import torchcaps.data.augment.pipeline
import torchcaps.data.window
from torchcaps.data import sample_digits
from torchcaps.data.augment import (
    AUGMENTATIONS,
    Affine,
    Contrast,
    Crop,
    Deform,
    Elastic,
    Flip,
    Place,
    Shift,
    Standardize,
    build,
)
from torchcaps.data.augment.deform import spline_basis
from torchcaps.data.random import RandomStream
from torchcaps.data.window import to_unit_float
from torchcaps.errors import DataError

STREAM = RandomStream(7, "augment/test")
PARAMETERS: dict[str, dict[str, object]] = {name: {} for name in AUGMENTATIONS} | {"crop": {"size": 9}}
MOVES_PIXELS_ONLY = ("crop", "cutout", "flip", "place", "shift")
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def pictures(count: int = 37, channels: int = 3, side: int = 13) -> Tensor:
    drawn = np.random.default_rng(0).integers(0, 256, (count, channels, side, side), dtype=np.uint8)
    return torch.from_numpy(drawn)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_example_depends_on_its_counter_alone(name: str) -> None:
    pipeline = build([{"name": name, **PARAMETERS[name]}])
    images, counter = pictures(), torch.arange(1000, 1037)
    whole = pipeline(images, counter, seed=3)
    assert torch.equal(pipeline(images[5:9], counter[5:9], seed=3), whole[5:9])
    assert torch.equal(pipeline(images.flip(0), counter.flip(0), seed=3), whole.flip(0))
    changed = [not torch.equal(whole, pipeline(images, *other)) for other in ((counter, 4), (counter + 50, 3))]
    assert changed == [name != "standardize"] * 2


@pytest.mark.parametrize("name", ["shift", "flip", "cutout", "affine", "elastic", "deform"])
def test_chance_leaves_the_other_examples_as_they_are(name: str) -> None:
    images, counter = pictures(side=13)[:1].repeat(4000, 1, 1, 1), torch.arange(4000)
    always = build([{"name": name}])(images, counter, seed=3)
    sometimes = build([{"name": name, "chance": 0.3}])(images, counter, seed=3)
    as_before = (sometimes == images).flatten(1).all(1)
    changed = ~as_before
    assert torch.equal(sometimes[changed], always[changed])
    visible = (always != images).flatten(1).any(1)
    assert 0.27 < changed[visible].float().mean() < 0.33  # four deviations of 4000 coins
    assert torch.equal(build([{"name": name, "chance": 0.0}])(images, counter, seed=3), images)
    assert build([{"name": name, "chance": 1}]) == build([{"name": name}])


def test_the_coin_is_independent_of_what_the_augmentation_draws() -> None:
    images, counter = pictures(side=13)[:1].repeat(8000, 1, 1, 1), torch.arange(8000)
    flipped = (build([{"name": "flip"}])(images, counter, seed=3) != images).flatten(1).any(1)
    both = (build([{"name": "flip", "chance": 0.5}])(images, counter, seed=3) != images).flatten(1).any(1)
    assert 0.46 < both[flipped].float().mean() < 0.54


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ({"name": "flip", "chance": 1.5}, "from 0 to 1"),
        ({"name": "flip", "chance": "often"}, "chance must be a number from 0 to 1"),
        ({"name": "crop", "size": 9, "chance": 0.5}, "size and type"),
        ({"name": "contrast", "chance": 0.5}, "size and type"),
    ],
)
def test_a_chance_that_cannot_be_is_an_error(specification: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build([specification])(pictures(), torch.arange(37), seed=0)


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_types_and_shapes(name: str) -> None:
    pipeline = build([{"name": name, **PARAMETERS[name]}])
    side = {"crop": 9, "place": 40}.get(name, 13)
    for images in (pictures(), to_unit_float(pictures())):
        result = pipeline(images, torch.arange(37), seed=0)
        assert result.shape == (37, 3, side, side)
        keeps_bytes = name in (*MOVES_PIXELS_ONLY, "affine", "elastic", "deform")
        assert result.dtype == (images.dtype if keeps_bytes else torch.float32)
        assert pipeline.evaluate(images).shape == result.shape
        if name != "standardize" and result.is_floating_point():
            assert bool(((result >= 0) & (result <= 1 + 1e-6)).all())


@pytest.mark.parametrize("name", MOVES_PIXELS_ONLY)
def test_bytes_and_floats_move_alike(name: str) -> None:
    pipeline = build([{"name": name, **PARAMETERS[name]}])
    moved = pipeline(pictures(), torch.arange(37), seed=0)
    assert torch.equal(pipeline(pictures().float(), torch.arange(37), seed=0), moved.float())


@pytest.mark.parametrize("pixels", [0, 1, 2, 5])
def test_shift_matches_a_loop(pixels: int) -> None:
    images, counter = pictures(count=11, channels=2, side=7), torch.arange(11)
    got = Shift(pixels)(images, counter, STREAM).numpy()
    drawn = STREAM.integers(counter, 2 * pixels + 1, lanes=2).tolist()
    expected = np.zeros_like(got)
    for b, (top, left) in enumerate(drawn):
        down, right = pixels - top, pixels - left
        for y in range(7):
            for x in range(7):
                if 0 <= y - down < 7 and 0 <= x - right < 7:
                    expected[b, :, y, x] = images[b, :, y - down, x - right]
    assert np.array_equal(got, expected)


def test_shift_loses_no_ink_within_the_margin_and_uses_all_places() -> None:
    images = torch.zeros(20_000, 1, 9, 9, dtype=torch.uint8)
    images[:, :, 2:7, 2:7] = 200  # a margin of 2
    images[:, :, 4, 4] = 255
    shifted = Shift(2)(images, torch.arange(20_000), STREAM)
    assert torch.equal(shifted.sum((1, 2, 3)), images.sum((1, 2, 3)))
    places = torch.bincount(shifted.flatten(1).argmax(1), minlength=81)
    used = places[places > 0]
    assert len(used) == 25
    chi_square = float(((used - 800.0) ** 2 / 800).sum())
    assert chi_square < 24 + 5 * 48**0.5


def test_crop_is_a_part_and_central_at_test() -> None:
    images = torch.arange(64).reshape(1, 1, 8, 8).expand(500, 1, 8, 8).to(torch.uint8)
    cropped = Crop(5)(images, torch.arange(500), STREAM)
    corners = cropped[:, 0, 0, 0]
    assert set(corners.tolist()) == {8 * top + left for top in range(4) for left in range(4)}
    pattern = torch.arange(5)[:, None] * 8 + torch.arange(5)
    assert torch.equal(cropped[:, 0].long(), corners.long()[:, None, None] + pattern)
    assert torch.equal(Crop(4).evaluate(images), images[..., 2:6, 2:6])
    assert torch.equal(Crop(8, padding=2).evaluate(images), images)


def test_place_by_ink_loses_none_and_goes_up_to_the_edge() -> None:
    images = torch.zeros(4000, 2, 9, 9, dtype=torch.uint8)
    images[:, 1, 3:5, 2:7] = torch.arange(1, 11, dtype=torch.uint8).reshape(2, 5)  # ink of 2×5 in one channel alone
    images[0] = 0
    placed = Place(12, by_ink=True)(images, torch.arange(4000), RandomStream(3, "place"))
    assert placed.shape == (4000, 2, 12, 12)
    assert bool((placed[1:].flatten(1).sum(1, dtype=torch.int64) == 55).all())
    assert not placed[0].any()
    corner = placed[1:, 1].flatten(1).eq(1).long().argmax(1)  # where the first pixel of ink went
    counts = torch.bincount(corner, minlength=144).reshape(12, 12)
    assert bool((counts[:11, :8] > 0).all())  # 11 × 8 places, all of them
    assert int(counts.sum() - counts[:11, :8].sum()) == 0
    assert 20 < int(counts[:11, :8].min()) <= int(counts[:11, :8].max()) < 80  # 45 each, evenly
    full = torch.full((50, 1, 9, 9), 7, dtype=torch.uint8)
    stream, counter = RandomStream(0, "place"), torch.arange(50)
    assert bool((Place(9, by_ink=True)(full, counter, stream) == 7).all())


def test_place_is_central_at_test() -> None:
    images = pictures(side=13)
    centred = Place(20).evaluate(images)
    assert torch.equal(centred[..., 3:16, 3:16], images)
    assert int(centred.sum()) == int(images.sum())


def test_flip_mirrors_the_given_share() -> None:
    images = pictures(count=1, side=5).expand(4000, 3, 5, 5)
    flipped = Flip(0.25)(images, torch.arange(4000), STREAM)
    mirrored = (flipped == images.flip(-1)).flatten(1).all(1)
    assert bool((mirrored | (flipped == images).flatten(1).all(1)).all())
    assert 0.22 < float(mirrored.float().mean()) < 0.28
    assert torch.equal(Flip(1.0)(images, torch.arange(4000), STREAM), images.flip(-1))


def test_cutout_blanks_one_square() -> None:
    images = torch.ones(3000, 2, 10, 12, dtype=torch.uint8)
    cut = build([{"name": "cutout", "size": 4}])(images, torch.arange(3000), seed=0)
    hole = cut[:, 0] == 0
    assert torch.equal(hole, cut[:, 1] == 0)
    heights, widths = hole.any(2).sum(1), hole.any(1).sum(1)
    assert torch.equal(hole.sum((1, 2)), heights * widths)
    assert (int(heights.min()), int(heights.max())) == (2, 4)  # at an edge half of it is outside
    assert int((heights * widths == 16).sum()) > 1000


def test_brightness_adds_one_number_to_a_picture() -> None:
    images = pictures()
    added = build([{"name": "brightness", "levels": 63, "clip": False}])(images, torch.arange(37), seed=0)
    difference = (added - to_unit_float(images)).flatten(1)
    assert float((difference - difference[:, :1]).abs().max()) < 1e-6
    assert 40 / 255 < float(difference.abs().max()) <= 63 / 255 + 1e-6


def test_contrast_keeps_each_channels_mean() -> None:
    images = to_unit_float(pictures())
    stretched = Contrast(0.2, 1.8, clip=False)(images, torch.arange(37), STREAM)
    torch.testing.assert_close(stretched.mean((2, 3)), images.mean((2, 3)))
    factor = stretched.std((2, 3)) / images.std((2, 3))
    torch.testing.assert_close(factor, factor[:, :1].expand(-1, 3))
    assert 0.2 <= float(factor.min()) < 0.5 < 1.5 < float(factor.max()) <= 1.8


def test_standardize_gives_mean_zero_and_deviation_one() -> None:
    standard = Standardize().evaluate(pictures())
    torch.testing.assert_close(standard.mean((1, 2, 3)), torch.zeros(37), atol=1e-5, rtol=0)
    torch.testing.assert_close(standard.std((1, 2, 3), correction=0), torch.ones(37))
    flat = Standardize().evaluate(torch.full((1, 1, 4, 4), 9, dtype=torch.uint8))
    assert float(flat.abs().max()) < 1e-4


def test_affine_without_any_range_is_the_picture() -> None:
    still = Affine(degrees=0, shear=0, scale=(1, 1), translate=0)
    assert torch.equal(still(pictures(), torch.arange(37), STREAM), pictures())


def test_affine_translation_moves_the_centre_of_mass() -> None:
    images = torch.zeros(2000, 1, 21, 21)
    images[:, :, 10, 10] = 1.0
    moved = Affine(degrees=0, shear=0, scale=(1, 1), translate=3)(images, torch.arange(2000), STREAM)[:, 0]
    axis = torch.arange(21.0) - 10
    centre = torch.stack(((moved.sum(2) * axis).sum(1), (moved.sum(1) * axis).sum(1)), dim=1)
    torch.testing.assert_close(moved.sum((1, 2)), torch.ones(2000))
    assert torch.allclose(centre.mean(0), torch.zeros(2), atol=0.15)
    assert 2.9 < float(centre.abs().max()) <= 3.01


def test_elastic_moves_no_pixel_further_than_told_and_bends() -> None:
    for length, spacing in ((28, 7), (13, 5), (9, 20)):
        basis = spline_basis(length, spacing, torch.device("cpu"))
        torch.testing.assert_close(basis.sum(1), torch.ones(length))
        assert float(basis.min()) >= 0
    digits = sample_digits("train").images[:64]
    assert torch.equal(Elastic(pixels=0)(digits, torch.arange(64), STREAM), digits)
    # A picture whose grey level is its column shows by how much each place moved.
    ramp = (torch.arange(28.0) / 28).expand(64, 1, 28, 28)
    moved = (Elastic(pixels=3, spacing=7)(ramp, torch.arange(64), STREAM) - ramp)[..., 4:24, 4:24] * 28
    assert 1.0 < float(moved.abs().max()) <= 3.01
    assert float(moved.flatten(1).std(1).min()) > 0.05


STILL: dict[str, Any] = {"degrees": 0, "shear": 0, "scale": (1, 1), "translate": 0}


def test_deform_moves_as_affine_and_elastic_do() -> None:
    digits = sample_digits("train").images[:64]
    counter = torch.arange(64)
    assert torch.equal(Deform(**STILL, pixels=0)(digits, counter, STREAM), digits)
    turned = Affine(15, 0.1, (0.9, 1.1), 2)(digits, counter, STREAM).float()
    assert (Deform(pixels=0)(digits, counter, STREAM).float() - turned).abs().mean() < 0.2 * (
        digits - turned
    ).abs().mean()
    ramp = (torch.arange(28.0) / 28).expand(64, 1, 28, 28)
    moved = (Deform(**STILL, pixels=3)(ramp, counter, STREAM) - ramp)[..., 4:24, 4:24] * 28
    assert 1.0 < float(moved.abs().max()) <= 3.01
    assert float(moved.flatten(1).std(1).min()) > 0.05


def test_deform_keeps_strokes_sharper_than_two_steps_do() -> None:
    digits, counter = sample_digits("train").images[:200], torch.arange(200)

    def soft(images: Tensor) -> float:
        """The share of grey among the ink."""
        return float(((images > 25) & (images < 230)).sum() / (images > 25).sum())

    two_steps = build([{"name": "affine"}, {"name": "elastic", "pixels": 2.0}])(digits, counter, seed=0)
    one_step = build([{"name": "deform"}])(digits, counter, seed=0)
    assert soft(one_step) - soft(digits) < 0.5 * (soft(two_steps) - soft(digits))


def test_the_pulls_of_deform_do_not_follow_its_affine_map() -> None:
    """They are drawn apart from the numbers that the affine map is drawn from, which are those of Elastic's pulls."""
    counter = torch.arange(64)
    ramp = (torch.arange(28.0) / 28).expand(64, 1, 28, 28)
    pulled = Deform(**STILL, pixels=3)(ramp, counter, STREAM) - Elastic(pixels=3)(ramp, counter, STREAM)
    assert float(pulled[..., 4:24, 4:24].abs().mean()) * 28 > 0.3


def test_steps_of_a_chain_draw_apart() -> None:
    images = torch.zeros(400, 1, 21, 21, dtype=torch.uint8)
    images[:, :, 10, 10] = 1
    chain = build([{"name": "shift", "pixels": 3}, {"name": "shift", "pixels": 3}])
    moved = chain(images, torch.arange(400), seed=0).flatten(1).argmax(1)
    odd_distances = ((moved // 21 - 10) % 2 == 1).float().mean()
    assert 0.4 < float(odd_distances) < 0.6  # always even if both steps drew the same shift


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ({"name": "shfit"}, "choose from affine, brightness"),
        ({"pixels": 2}, "no augmentation is named None"),
        ({"name": "shift", "pixel": 2}, "it takes pixels"),
        ({"name": "crop"}, "needs size"),
        ({"name": "shift", "pixels": -1}, "from 0 to 1,000, got -1"),
        ({"name": "shift", "pixels": "two"}, "pixels must be a whole number from 0 to 1,000, got 'two'"),
        ({"name": "shift", "pixels": 1.5}, "pixels must be a whole number from 0 to 1,000, got 1.5"),
        ({"name": "brightness", "clip": "no"}, "clip must be true or false, got 'no'"),
        ({"name": "affine", "degrees": "two"}, "degrees must be a number from 0 to 360"),
        ({"name": "affine", "scale": [1.2, 0.8]}, "smaller first"),
        ({"name": "flip", "probability": 2}, "from 0 to 1, got 2"),
        ({"name": "standardize", "mean": 0}, "none at all"),
    ],
)
def test_bad_recipes_are_refused_with_advice(specification: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        build([specification])


def test_crop_larger_than_the_picture_is_refused() -> None:
    with pytest.raises(DataError, match="13×13"):
        Crop(14)(pictures(), torch.arange(37), STREAM)


@pytest.mark.gpu
@needs_cuda
@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_same_result_on_the_gpu(name: str) -> None:
    pipeline = build([{"name": name, **PARAMETERS[name]}])
    on_cpu = pipeline(pictures(), torch.arange(37), seed=0)
    on_gpu = pipeline(pictures().cuda(), torch.arange(37, device="cuda"), seed=0).cpu()
    if name in (*MOVES_PIXELS_ONLY, "affine"):
        assert torch.equal(on_gpu, on_cpu)
    elif name == "elastic":  # float32 displacements may fall on the other side of 1/512 pixel
        assert int((on_gpu.int() - on_cpu.int()).abs().max()) <= 2
    elif name == "deform":  # likewise, and each of four weights an axis may then be rounded the other way
        apart = (on_gpu.int() - on_cpu.int()).abs()
        assert int(apart.max()) <= 10
        assert float(apart.float().mean()) < 0.1
    else:
        torch.testing.assert_close(on_gpu, on_cpu)


@pytest.mark.parametrize("module", [torchcaps.data.augment.pipeline, torchcaps.data.window])
def test_examples_in_the_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0
