"""MultiMNIST against a slow reference in plain Python, and its properties."""

from __future__ import annotations

import doctest
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import torchcaps.data.multi_loader
import torchcaps.data.multimnist
import torchcaps.data.overlap
from torchcaps.data import TestSplit, TrainSplit, sample_digits
from torchcaps.data.multi_loader import MultiLoader
from torchcaps.data.multimnist import VARIANTS as RULES
from torchcaps.data.multimnist import MultiBatch, MultiMNIST
from torchcaps.data.overlap import bounding_boxes, frame_overlap, overlap
from torchcaps.errors import DataError
from torchcaps.models import get_preset

VARIANTS = ["paper", "official"]
# sha256 over the bytes of images, labels and singles of pairs 0, 499, 998, … of seed 0 of the embedded digits.
GOLDEN = {
    "paper": "450ed7b39bc5f8a1e57c62b22b1152541e3f08c8f720e4d558e6bb7aab194b4a",
    "official": "c9986875a0ba91802147ee19f1665469c8162ad9b63d41889bedea3f6dd2ec4d",
}
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def small_split(count: int = 23, height: int = 7, width: int = 5, classes: int = 3, seed: int = 0) -> TrainSplit:
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (count, 1, height, width), dtype=np.uint8)
    labels = np.concatenate((np.arange(classes), generator.integers(0, classes, count - classes)))
    return TrainSplit(torch.from_numpy(images), torch.from_numpy(labels))


def draw(seed: int, name: str, counter: int, lane: int, count: int) -> int:
    """⌊u·count / 2³²⌋ from the upper half of SplitMix64, in unbounded integers."""
    size = 1 << 64
    key = int.from_bytes(hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest(), "little")
    state = (key + counter * 0x9E3779B97F4A7C15 + lane * 0xC2B2AE3D27D4EB4F) % size
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % size
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % size
    return ((state ^ (state >> 31)) >> 32) * count >> 32


def shifted_canvas(picture: NDArray[np.uint8], pad: int, down: int, right: int) -> NDArray[np.uint8]:
    """Pad, then move pixel by pixel; what leaves the canvas is lost."""
    height, width = picture.shape[0] + 2 * pad, picture.shape[1] + 2 * pad
    canvas = np.zeros((height, width), np.uint8)
    for y in range(picture.shape[0]):
        for x in range(picture.shape[1]):
            row, column = y + pad + down, x + pad + right
            if 0 <= row < height and 0 <= column < width:
                canvas[row, column] = picture[y, x]
    return canvas


def reference_pair(
    split: TrainSplit, variant: str, seed: int, k: int, pairs_per_digit: int
) -> tuple[NDArray[np.uint8], list[int], list[NDArray[np.uint8]]]:
    shift, steps = {"paper": (4, 9), "official": (6, 13)}[variant]
    labels = split.labels.tolist()
    base = k // pairs_per_digit
    others = [i for c in range(max(labels) + 1) if c != labels[base] for i, label in enumerate(labels) if label == c]
    partner = others[draw(seed, f"multimnist/{variant}/partner", k, 0, len(others))]
    name = f"multimnist/{variant}/shift"
    if variant == "paper":
        moves = [draw(seed, name, k, lane, steps) - shift for lane in range(4)]
    else:
        moves = [draw(seed, f"multimnist/{variant}/base-shift", base, lane, steps) - shift for lane in range(2)]
        moves += [draw(seed, name, k, lane, steps) - shift for lane in range(2)]
    singles = [
        shifted_canvas(split.images[base, 0].numpy(), 4, moves[0], moves[1]),
        shifted_canvas(split.images[partner, 0].numpy(), 4, moves[2], moves[3]),
    ]
    merged = np.minimum(singles[0].astype(int) + singles[1].astype(int), 255).astype(np.uint8)
    return merged, [labels[base], labels[partner]], singles


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("height", "width", "classes"), [(7, 5, 3), (3, 9, 2)])
def test_matches_the_slow_reference(variant: str, height: int, width: int, classes: int) -> None:
    split = small_split(height=height, width=width, classes=classes)
    multi = MultiMNIST(split, variant, seed=11, pairs_per_digit=7)
    indices = torch.arange(0, len(multi), 3)
    batch = multi.pairs(indices)
    for row, k in enumerate(indices.tolist()):
        merged, labels, singles = reference_pair(split, variant, 11, k, pairs_per_digit=7)
        assert np.array_equal(batch.images[row, 0].numpy(), merged)
        assert batch.labels[row].tolist() == labels
        for place, single in enumerate(singles):
            assert np.array_equal(batch.singles[row, place, 0].numpy(), single)


def digest(batch: MultiBatch) -> str:
    parts = (batch.images, batch.labels, batch.singles)
    return hashlib.sha256(b"".join(part.cpu().numpy().tobytes() for part in parts)).hexdigest()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, needs_cuda])])
@pytest.mark.parametrize("variant", VARIANTS)
def test_pairs_are_what_they_have_always_been(variant: str, device: str) -> None:
    multi = MultiMNIST(sample_digits("train"), variant, seed=0, device=device)
    assert digest(multi.pairs(torch.arange(0, 1_000_000, 499, device=device))) == GOLDEN[variant]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("batch_size", [1, 63, 500])
def test_a_pair_does_not_depend_on_its_batch(variant: str, batch_size: int) -> None:
    multi = MultiMNIST(sample_digits("train"), variant, seed=5)
    whole = multi.pairs(torch.arange(900, 1100))
    parts = list(multi.batches(batch_size, start=900, stop=1100))
    assert torch.equal(torch.cat([part.images for part in parts]), whole.images)
    assert torch.equal(torch.cat([part.singles for part in parts]), whole.singles)
    assert torch.equal(multi[950].images[0], whole.images[50])


@pytest.mark.parametrize("variant", VARIANTS)
def test_picture_is_the_clipped_sum_of_the_singles(variant: str) -> None:
    batch = MultiMNIST(sample_digits("train"), variant).pairs(torch.arange(0, 1_000_000, 1999))
    total = batch.singles.int().sum(1)
    assert int(total.max()) > 255  # clipping does happen here
    assert torch.equal(batch.images.int(), total.clamp(max=255))


def test_paper_variant_loses_no_ink_and_official_loses_what_leaves() -> None:
    split = sample_digits("train")
    ink = split.images.sum((1, 2, 3))
    indices = torch.arange(0, 1_000_000, 1999)
    losses = {}
    for variant in VARIANTS:
        multi = MultiMNIST(split, variant)
        kept = multi.pairs(indices).singles.sum((2, 3, 4))
        losses[variant] = ink[multi.plan(indices).pictures] - kept
    assert int(losses["paper"].abs().max()) == 0
    assert int(losses["official"].min()) >= 0
    frame = TrainSplit(torch.full((4, 1, 28, 28), 255, dtype=torch.uint8), torch.tensor([0, 1, 0, 1]))
    assert int(MultiMNIST(frame, "official").pairs(torch.arange(4000)).singles.sum((2, 3, 4)).min()) < 28 * 28 * 255


@pytest.mark.parametrize(("variant", "limit"), [("paper", 4), ("official", 6)])
def test_shifts_are_uniform_within_the_limit(variant: str, limit: int) -> None:
    multi = MultiMNIST(sample_digits("train"), variant)
    shifts = multi.plan(torch.arange(0, 1_000_000, 10)).shifts
    assert (int(shifts.min()), int(shifts.max())) == (-limit, limit)
    partner = torch.bincount(shifts[:, 1].flatten() + limit).double() / shifts[:, 1].numel()
    assert torch.allclose(partner, torch.full_like(partner, 1 / (2 * limit + 1)), atol=0.005)
    base = shifts[:, 0].unflatten(0, (1000, 100))  # [digit, pair, 2]
    drawn_once = bool((base == base[:, :1]).all())
    assert drawn_once == (variant == "official")


def test_no_two_digits_of_one_class_in_ten_million() -> None:
    labels = torch.from_numpy(np.random.default_rng(0).integers(0, 10, 10_000))
    multi = MultiMNIST(TrainSplit(torch.zeros(10_000, 1, 1, 1, dtype=torch.uint8), labels))
    assert len(multi) == 10_000_000
    partners = torch.zeros(10, 10, dtype=torch.int64)
    for first in range(0, len(multi), 500_000):
        pair = multi.labels(torch.arange(first, first + 500_000))
        assert not bool((pair[:, 0] == pair[:, 1]).any())
        partners += torch.bincount(pair[:, 0] * 10 + pair[:, 1], minlength=100).unflatten(0, (10, 10))
    # Each base digit has 1000 pairs, and each other class comes in proportion to its size.
    sizes = torch.bincount(labels).double()
    expected = sizes[:, None] * 1000 * sizes[None, :] / (10_000 - sizes[:, None])
    expected.fill_diagonal_(0)
    assert float(((partners - expected).abs() / expected.clamp(min=1)).max()) < 0.02


def test_every_other_picture_can_be_the_partner() -> None:
    split = small_split(count=11, classes=3)
    pictures = MultiMNIST(split, pairs_per_digit=400).plan(torch.arange(11 * 400)).pictures
    met = {(base, partner) for base, partner in pictures.tolist()}
    labels = split.labels.tolist()
    assert met == {(i, j) for i in range(11) for j in range(11) if labels[i] != labels[j]}


def test_seeds_and_variants_differ() -> None:
    indices = torch.arange(500)
    plans = [MultiMNIST(sample_digits("train"), seed=seed).plan(indices).pictures[:, 1] for seed in (0, 1)]
    assert int((plans[0] == plans[1]).sum()) < 20


def test_multi_hot_marks_both_classes() -> None:
    batch = MultiMNIST(sample_digits("train")).pairs(torch.arange(0, 90_000, 1111))
    rows = batch.multi_hot(10)
    assert torch.equal(rows.sum(1), torch.full((len(rows),), 2.0))
    assert bool((rows.gather(1, batch.labels) == 1).all())


def test_bounding_boxes_match_a_loop() -> None:
    generator = np.random.default_rng(3)
    images = (generator.random((40, 1, 9, 11)) < 0.04).astype(np.uint8)
    images[0] = 0
    boxes = bounding_boxes(torch.from_numpy(images)).tolist()
    for image, box in zip(images, boxes, strict=True):
        rows, columns = np.nonzero(image[0])
        expected = [rows.min(), columns.min(), rows.max() + 1, columns.max() + 1] if len(rows) else [0, 0, 0, 0]
        assert box == expected


def test_overlap_of_known_boxes() -> None:
    singles = torch.zeros(2, 2, 1, 12, 12, dtype=torch.uint8)
    singles[0, 0, 0, 0:4, 0:4] = 1  # 16 pixels
    singles[0, 1, 0, 2:8, 2:10] = 1  # 48 pixels, 4 shared
    singles[1, 0, 0, 0:4, 0:4] = 1  # the second pair's partner is black
    shifts = torch.tensor([[[0, 0], [3, -1]], [[4, 0], [-4, 0]]])
    batch = MultiBatch(singles.sum(1), torch.tensor([[0, 1], [0, 1]]), singles, shifts)
    measured = overlap(batch)
    assert measured.covered.tolist() == pytest.approx([(4 / 16 + 4 / 48) / 2, 0])
    assert measured.over_smaller.tolist() == pytest.approx([4 / 16, 0])
    assert measured.over_larger.tolist() == pytest.approx([4 / 48, 0])
    assert measured.over_union.tolist() == pytest.approx([4 / 60, 0])
    assert frame_overlap(batch).tolist() == pytest.approx([25 * 27 / 784, 20 * 28 / 784])


def test_frames_overlap_by_the_eighty_percent_of_the_paper() -> None:
    batch = MultiMNIST(sample_digits("train")).pairs(torch.arange(0, 1_000_000, 101))
    assert float(frame_overlap(batch).mean()) == pytest.approx(((28 - 80 / 27) / 28) ** 2, abs=0.005)


def test_loader_shows_each_pair_once() -> None:
    loader = MultiLoader(MultiMNIST(small_split(count=20), pairs_per_digit=3), batch_size=5, dtype=torch.uint8)
    seen: list[int] = []
    for step in range(12):
        loader.prepare(step)
        seen += loader.pair_indices(torch.tensor(step)).tolist()
        if step % 4 == 3:
            assert len({pair // 3 for pair in seen[-20:]}) == 20  # an epoch visits each base digit once
    assert sorted(seen) == list(range(60))


def test_loader_shards_are_parts_of_the_whole() -> None:
    multi = MultiMNIST(sample_digits("train"))
    whole = next(iter(MultiLoader(multi, 96, seed=2)))
    parts = [next(iter(MultiLoader(multi, 96, seed=2, rank=rank, world_size=3))) for rank in range(3)]
    assert torch.equal(torch.cat([part.images for part in parts]), whole.images)
    assert torch.equal(torch.cat([part.labels for part in parts]), whole.labels)
    assert whole.images.dtype == torch.float32
    assert float(whole.images.max()) == 1.0


def test_bad_input_is_refused_with_advice() -> None:
    split = small_split()
    with pytest.raises(DataError, match=r"official.*paper"):
        MultiMNIST(split, "nips")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="at least two classes"):
        MultiMNIST(TrainSplit(split.images, torch.zeros(23, dtype=torch.int64)))
    with pytest.raises(DataError, match="test split"):
        MultiLoader(MultiMNIST(TestSplit(split.images, split.labels)), batch_size=4)
    with pytest.raises(IndexError, match="pair 23000 of 23000"):
        MultiMNIST(split)[23_000]


@pytest.mark.parametrize("module", [torchcaps.data.multimnist, torchcaps.data.multi_loader, torchcaps.data.overlap])
def test_examples_in_the_docstrings(module: object) -> None:
    result = doctest.testmod(module)  # type: ignore[arg-type]
    assert result.attempted > 0
    assert result.failed == 0


def test_examples_in_the_manual() -> None:
    text = (Path(__file__).parents[2] / "docs" / "multimnist.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert examples
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)
    assert names["batch"].images.shape == (1000, 1, 36, 36)  # type: ignore[attr-defined]


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_are_those_of_the_presets(variant: str) -> None:
    preset, rule = get_preset(variant), RULES[variant]
    assert (rule.pad, rule.shift) == (preset.multimnist_pad, preset.multimnist_shift)
    assert rule.base_shift_once == preset.multimnist_base_shift_once
