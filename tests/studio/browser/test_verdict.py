"""Right or wrong by all that is in a picture, for both networks; and no verdict where nobody knows the truth."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
import torch

import torchcaps
from studio.browser.serving import thread_studio
from torchcaps.eval.metrics import predicted_classes, true_classes
from torchcaps.studio import Catalogue
from torchcaps.studio.affine import slider_values, transform

PAIRS = "capsnet-multimnist"
STROKE = base64.urlsafe_b64encode(bytes([70, 20, 70, 120, 255])).decode().rstrip("=")  # a one


@pytest.fixture(scope="module")
def cnn_of_pairs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cnn") / "cnn-pairs"
    torch.manual_seed(0)
    torchcaps.create_model("small-cnn", image_shape=(1, 36, 36), channels=4, hidden=16).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def pairs_address(cnn_of_pairs) -> Iterator[str]:
    with thread_studio([PAIRS, cnn_of_pairs]) as address:
        yield address


@pytest.fixture(scope="module")
def catalogue(cnn_of_pairs) -> Catalogue:
    return Catalogue([PAIRS, cnn_of_pairs])


@pytest.fixture(scope="module")
def index(catalogue) -> int:
    """A pair that the network finds, the longer capsule that of the second digit."""
    examples, model = catalogue.examples_of(PAIRS), catalogue.network(PAIRS).model
    with torch.no_grad():
        lengths = model(examples.pictures(torch.arange(60)).float() / 255).lengths
    for position, (first, second) in enumerate(lengths.topk(2).indices.tolist()):
        if [second, first] == examples.examples.labels(torch.tensor([position]))[0].tolist():
            return position
    raise AssertionError("none of the first pairs is found")


def names_at_every_place(catalogue: Catalogue, model_id: str, image: torch.Tensor) -> torch.Tensor:
    model = catalogue.network(model_id).model
    moved = transform(image, "rotate", slider_values("rotate", model.image_shape))
    with torch.no_grad():
        return predicted_classes(model(moved.float() / 255).scores, torch.zeros(41, 2, dtype=torch.int64))


def test_pairs_are_judged_by_both_digits(open_screens, pairs_address, catalogue, index):
    screens = open_screens(pairs_address)
    page = screens.go(f"model={PAIRS}&screen=affine&index={index}")
    page.wait_for_selector("#affine-rival")
    examples = catalogue.examples_of(PAIRS)
    image, labels = examples.pictures(torch.tensor([index]))[0], examples.examples.labels(torch.tensor([index]))
    truth = true_classes(labels, 10)
    right = {name: (names_at_every_place(catalogue, name, image) == truth).all(dim=1) for name in (PAIRS, "cnn-pairs")}
    assert right[PAIRS][20]  # no hole at rest
    own, rival = (int(found.sum()) for found in right.values())
    words = page.locator("#affine-count").inner_text()
    assert f"Capsule network right at {own} of 41 places, plain CNN at {rival}." in words
    assert page.locator("rect.own").count() == own
    assert page.locator("rect.rival").count() == rival
    both = " and ".join(str(j) for j in labels[0].tolist())
    assert set(page.locator("#affine-own").inner_text().split(" and ")) == set(both.split(" and "))
    assert page.locator("polyline.own").count() == page.locator("polyline.rival").count() == 2
    heading = page.locator("#screen h2").inner_text()
    page.locator("aside.right ul button").nth(0).click()  # another capsule has another curve, but no other truth
    page.get_by_text("Belief in 0 over").wait_for()
    assert page.locator("#screen h2").inner_text() == heading
    assert page.locator("#affine-count").inner_text() == words
    page.keyboard.press("1")
    page.get_by_text("recognised").wait_for()
    heading = page.locator("#screen h2").inner_text()
    assert heading.startswith("The longest capsules are ")
    assert heading.count(" and ") == 2  # of the CNN, too
    assert page.locator("#screen rect.first, #screen rect.second").count() == 2


@pytest.mark.parametrize("pairs", [True, False])
def test_nothing_is_right_where_nobody_knows_the_truth(open_screens, pairs_address, studio_address, pairs):
    screens = open_screens(pairs_address if pairs else studio_address)
    page = screens.go(f"screen=affine&input=draw&strokes={STROKE}")
    page.wait_for_selector("#affine-rival")
    words = page.locator("#affine-count").inner_text()
    assert "Capsule network the same as at rest at " in words
    assert " right at" not in page.locator("#screen").inner_text()
    said = [row[2 + pairs] for row in screens.table("#affine-table")]
    count = sum(sorted(each.split(" and ")) == sorted(said[20].split(" and ")) for each in said)
    assert f"at {count} of 41 places" in words
    assert page.locator("rect.own").count() == count
    page.wait_for_function("() => document.querySelector('[role=status]').textContent.includes('the same as at rest')")


def test_two_laid_over_each_other_are_judged_by_both(screens):
    page = screens.go("screen=affine&input=overlay")
    page.wait_for_selector("#affine-rival")
    assert " and " in page.locator("#affine-own").inner_text()
    assert " right at " in page.locator("#affine-count").inner_text()


def test_any_number_of_things_is_what_is_longer_than_a_half(screens):
    def many(route):
        models = route.fetch().json()
        route.fulfill(json=[{**model, "multi": 0} for model in models])

    screens.page.route("**/api/models", many)
    page = screens.go("input=draw")
    page.get_by_text("Nothing is drawn yet").wait_for()
    page = screens.go(f"input=draw&strokes={STROKE}")
    found = [str(j) for j, length in enumerate(screens.lengths()) if length > 0.5]
    assert f"The network finds {' and '.join(found) or 'no class'}" in page.locator("#screen h2").inner_text()
