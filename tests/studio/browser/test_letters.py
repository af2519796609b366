"""The page takes its size from the browser's letters, and nothing sticks out at twice the size."""

from __future__ import annotations

import shutil

import pytest

from studio.browser.conftest import FLAGS
from studio.browser.screens import Screens
from studio.browser.test_accessibility import STATES

STICKING_OUT = """() => ['html', 'main', 'aside.left', 'aside.right']
  .filter(part => {
    const { scrollWidth, clientWidth } = document.querySelector(part);
    return scrollWidth > clientWidth;
  })"""


@pytest.mark.parametrize("letters", [16, 32])
def test_the_letters_of_the_browser_fit_every_window(chromium, studio_address, letters):
    browser = chromium.browser_type.launch(
        executable_path=shutil.which("chromium"), args=[*FLAGS, f"--blink-settings=defaultFontSize={letters}"]
    )
    screens = Screens(browser.new_context(viewport={"width": 320, "height": 800}), studio_address)
    page = screens.go()
    size = page.locator("#screen p").first.evaluate("words => parseFloat(getComputedStyle(words).fontSize)")
    assert size == pytest.approx(letters * 15 / 16)
    page.get_by_role("button", name="Change").click()
    for state in STATES.values():
        page.evaluate("state => { location.hash = state; }", state)
        screens.settle(200)
        for width in (320, 390, 820, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate(STICKING_OUT) == [], f"{state} at {width}"
    browser.close()
    assert screens.complaints == []


@pytest.mark.parametrize("screen", ["look", "routing", "affine"])
def test_the_words_of_graphs_can_be_read_on_a_phone(open_screens, studio_address, screen):
    screens = open_screens(studio_address, 390, 844)
    page = screens.go(f"screen={screen}")
    page.wait_for_selector("#screen svg text")
    screens.settle(200)
    sizes = page.locator("#screen svg text").evaluate_all(
        "words => words.map(word => parseFloat(getComputedStyle(word).fontSize) * word.getScreenCTM().d)"
    )
    assert min(sizes) > 9.5  # pixels
