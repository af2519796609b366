"""Two digits over each other: both are found, and each is drawn by itself."""

from __future__ import annotations

import itertools

import pytest
import torch

from torchcaps.data import move, sample_digits
from torchcaps.eval import load_model


@pytest.fixture(scope="module")
def pair(networks):
    """Two test images that this small network, trained on single digits, tells apart when one lies over the other."""
    model = load_model(str(networks[0])).eval()
    test = sample_digits("test")
    candidates = [(44, 286), (226, 433), (44, 186), *itertools.product(range(0, 60), range(200, 260))]
    candidates = [(a, b) for a, b in candidates if test.labels[a] != test.labels[b]]
    left, right = (move(test.images, "shift-x", torch.full((len(test.images),), shift)).int() for shift in (-4.0, 4.0))
    pictures = torch.stack([(left[a] + right[b]).clamp(max=255) for a, b in candidates])
    with torch.no_grad():
        lengths = torch.cat([model(part.float() / 255).lengths for part in pictures.split(500)])
    best = lengths.topk(3, 1)
    margins = best.values[:, 1] - best.values[:, 2]
    for n, found in enumerate(best.indices[:, :2].tolist()):
        a, b = candidates[n]
        if set(found) != {int(test.labels[a]), int(test.labels[b])}:
            margins[n] = -1
    a, b = candidates[int(margins.argmax())]
    return a, b, str(int(test.labels[a])), str(int(test.labels[b]))


def check_found(screens, pair) -> None:
    page = screens.page
    page.get_by_text("Both digits are found.").wait_for()
    assert page.locator("#first-class").inner_text() == pair[2]  # orange, as in the input
    assert page.locator("#second-class").inner_text() == pair[3]


def test_two_digits_dragged_over_each_other(screens, pair):
    page = screens.go(f"screen=overlap&input=overlay&first={pair[0]}&second={pair[1]}&firstX=-9&secondX=4")
    page.wait_for_selector("#pair[data-ready=true]")
    before = screens.grey("#seen")
    box = page.locator("#overlay-pad").bounding_box()
    pixel = box["width"] / 28
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)  # left of everything: the first digit is nearest
    page.mouse.down()
    page.mouse.move(box["x"] + 1 + 5.2 * pixel, box["y"] + box["height"] / 2, steps=8)
    page.mouse.up()
    check_found(screens, pair)
    assert not torch.equal(screens.grey("#seen"), before)
    assert screens.grey("#pair").max() > 100


def test_two_digits_by_keyboard(screens, pair):
    page = screens.go(f"screen=overlap&input=overlay&first={pair[0]}&second={pair[1]}&firstX=-4&secondX=7")
    screens.tab_to("#overlay-pad")
    page.keyboard.press("Space")  # choose the second
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    check_found(screens, pair)


def test_any_other_capsule_draws_too(screens):
    page = screens.go("screen=overlap&input=overlay")
    page.wait_for_selector("#other[data-ready=true]")
    before = screens.grey("#pair")
    page.locator("#screen select").select_option("0")
    page.wait_for_function("() => location.hash.includes('other=0')")
    assert torch.equal(screens.grey("#pair"), before)
