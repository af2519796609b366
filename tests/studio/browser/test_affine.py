"""Moved pictures: both networks over the whole range."""

from __future__ import annotations

import pytest
import torch

from torchcaps.data import sample_digits
from torchcaps.eval import load_model
from torchcaps.studio.affine import transform

INDEX = 7


def points(page, kind: str) -> int:
    return len(page.locator(f"polyline.{kind}").get_attribute("points").split())


def test_rotation_shows_both_curves_as_pytorch_has_them(screens, networks):
    page = screens.go(f"screen=affine&index={INDEX}")
    page.wait_for_selector("#affine-rival")
    assert points(page, "own") == points(page, "rival") == 41
    before = screens.grey("#affine-picture")
    page.locator("#affine").fill("30")  # 90 degrees
    assert not torch.equal(screens.grey("#affine-picture"), before)
    model, test = load_model(str(networks[0])).eval(), sample_digits("test")
    with torch.no_grad():
        turned = transform(test.images[INDEX], "rotate", torch.tensor([90.0]))
        lengths = model(turned.float() / 255).lengths[0]
    row = screens.table("#affine-table")[30]
    assert row[0] == "90°"
    assert float(row[1]) == pytest.approx(float(lengths[int(test.labels[INDEX])]), abs=2e-4)
    assert row[2] == page.locator("#affine-own").inner_text() == str(int(lengths.argmax()))


def test_every_transformation_by_keyboard(screens):
    page = screens.go("screen=affine")
    page.wait_for_selector("#affine-rival")
    screens.tab_to("#screen input[type=radio]")
    for kind in ("shift-x", "shift-y", "scale", "shear"):
        page.keyboard.press("ArrowRight")
        page.wait_for_function("kind => location.hash.includes(`transform=${kind}`)", arg=kind)
    page.get_by_text("-45.0°").first.wait_for()
    before = screens.grey("#affine-picture")
    screens.tab_to("#affine")
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('#affine').value === '40'")
    assert not torch.equal(screens.grey("#affine-picture"), before)
