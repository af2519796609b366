"""Sliders move the numbers of a capsule, and the picture follows."""

from __future__ import annotations

import pytest
import torch

from torchcaps.data import sample_digits
from torchcaps.eval import load_model


@pytest.fixture(scope="module")
def model(networks):
    return load_model(str(networks[0])).eval()


def drawn(model, index: int, moves: dict[int, float]):
    """What PyTorch draws from the longest capsule with some numbers moved, as bytes."""
    with torch.no_grad():
        out = model(sample_digits("test").images[[index]].float() / 255)
        winner = out.lengths.argmax(1)
        for dimension, move in moves.items():
            out.capsules[0, winner, dimension] += move
        return (model.reconstruct(out.capsules, winner)[0, 0].flatten() * 255).round()


def test_a_slider_changes_the_pixels_as_pytorch_would(screens, model):
    page = screens.go("screen=dimensions&index=7")
    page.wait_for_selector("#moved[data-ready=true]")
    before = screens.grey("#moved").float()
    torch.testing.assert_close(before, drawn(model, 7, {}), atol=1, rtol=0)  # a byte is rounded or cut
    box = page.locator("[data-dimension='4']").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"], box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    after = screens.grey("#moved").float()
    assert (after - before).abs().max() > 8
    torch.testing.assert_close(after, drawn(model, 7, {4: 0.25}), atol=1, rtol=0)


def test_sliders_by_keyboard(screens, model):
    page = screens.go("screen=dimensions&index=7")
    page.wait_for_selector("#moved[data-ready=true]")
    before = screens.grey("#moved").float()
    screens.tab_to("[data-dimension='4']")
    page.keyboard.press("Home")
    assert (screens.grey("#moved").float() - before).abs().max() > 8
    torch.testing.assert_close(screens.grey("#moved").float(), drawn(model, 7, {4: -0.25}), atol=1, rtol=0)
    page.get_by_role("button", name="Reset").focus()
    page.keyboard.press("Enter")
    assert torch.equal(screens.grey("#moved").float(), before)


def test_a_cell_of_the_grid_sets_its_slider(screens):
    page = screens.go("screen=dimensions")
    page.wait_for_selector("canvas[data-done=true]")
    page.locator("[data-cell='9-10']").click()
    assert float(page.locator("[data-dimension='9']").input_value()) == pytest.approx(0.25)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert float(page.locator("[data-dimension='10']").input_value()) == pytest.approx(0.2)


def test_length_is_kept_when_asked(screens):
    page = screens.go("screen=dimensions&moves=0,0,0,0.25&keepLength=1")
    rows = screens.table("#screen details:last-of-type")
    found, shown = (torch.tensor([float(row[column]) for row in rows]) for column in (1, 3))
    torch.testing.assert_close(shown.norm(), found.norm(), atol=1e-3, rtol=0)  # printed with four digits
    assert not torch.allclose(shown, found, atol=1e-2)
    page.get_by_label("Keep the length").uncheck()
    page.get_by_text("±2σ").click()
    page.wait_for_function("() => document.querySelector('[data-dimension=\"0\"]').max !== '0.25'")


def test_the_range_is_named_as_it_is_until_the_spread_is_known(screens):
    page = screens.go("screen=dimensions")
    screens.slow_down("/statistics", 1500)
    page.get_by_text("±2σ").click()
    page.get_by_text("Measuring σ").wait_for()
    assert page.locator(".grid .steps").inner_text().split()[0] == "-0.25"
    page.get_by_text("Measuring σ").wait_for(state="hidden")
    assert page.locator(".grid .steps").inner_text().split()[0] == "-2.0σ"


def test_names_given_in_two_tabs(screens):
    page = screens.go("screen=dimensions")
    other = screens.context.new_page()
    other.goto(page.url)
    other.get_by_label("Name of dimension 3").fill("slant")
    other.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('[aria-label=\"Name of dimension 3\"]').value === 'slant'")
    page.get_by_label("Name of dimension 4").fill("width")
    page.keyboard.press("Enter")
    other.reload()
    assert other.get_by_label("Name of dimension 3").input_value() == "slant"
    assert other.get_by_label("Name of dimension 4").input_value() == "width"


def test_names_stay_in_the_browser(screens):
    page = screens.go("screen=dimensions")
    page.get_by_label("Name of dimension 3").fill("slant")
    page.keyboard.press("Enter")
    page.reload()
    page.wait_for_selector("[data-dimension='3']")
    assert page.get_by_label("Name of dimension 3").input_value() == "slant"
