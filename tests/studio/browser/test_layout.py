"""Nothing is wider than the window, and no equation is cut off, from a phone to a projector."""

from __future__ import annotations

import pytest

WIDTHS = (360, 768, 1001, 1024, 1060, 1093, 1116, 1200, 1280, 1366, 1920)
STATES = (
    "screen=look&card=0",
    "screen=look&card=1",
    "screen=routing&byHand=1&card=3",
    "screen=affine",
    "screen=routing",
)
MOVED = ".slide:has([data-dimension='0'], [data-dimension='1']) .found"  # elsewhere a thumb lies over the mark
TOO_WIDE = """() => {
  const root = document.documentElement;
  const parts = [...document.querySelectorAll('header, main, aside, .equation, .card:not(.numbers)')];
  const cut = parts.filter((part) => part.clientWidth && part.scrollWidth > part.clientWidth);
  const page = root.scrollWidth > innerWidth ? [`page by ${root.scrollWidth - innerWidth}`] : [];
  return [...page, ...cut.map((part) => part.className || part.localName)];
}"""


@pytest.fixture
def crowded(open_screens, studio_address):
    """With several networks to choose from and a run with checkpoints, the header is as full as it gets."""
    screens = open_screens(studio_address)

    def more(route):
        models = route.fetch().json()
        route.fulfill(json=[*models, {**models[0], "id": "another-capsnet", "name": "another-capsnet-of-long-name"}])

    screens.page.route("**/api/models", more)
    return screens


def test_no_window_is_too_narrow(crowded):
    page = crowded.go()
    found = []
    for state in STATES:
        page.evaluate("state => { location.hash = state; }", state)
        crowded.settle(150)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            found += [f"{state} at {width}: {part}" for part in page.evaluate(TOO_WIDE)]
    assert found == []


@pytest.mark.parametrize(
    ("state", "lines", "colour"),
    [
        ("screen=affine", ".swatch", "borderTopColor"),
        (
            "screen=dimensions&moves=0.2,-0.2",
            ".slide:has([data-dimension='0'], [data-dimension='1']) .found",
            "backgroundColor",
        ),
    ],
    ids=["legend", "marks"],
)
def test_the_png_has_the_lines_that_explain_it(screens, state, lines, colour):
    from PIL import Image, ImageColor

    page = screens.go(state)
    screens.settle()
    screen = page.locator("#screen").bounding_box()
    assert page.locator(f"#screen {lines}").count() == 2
    with page.expect_download() as download:
        page.keyboard.press("s")
    with Image.open(download.value.path()) as picture:
        painted = picture.convert("RGB")
        for line in page.locator(f"#screen {lines}").all():
            box = line.bounding_box()
            ink = ImageColor.getrgb(line.evaluate("(line, colour) => getComputedStyle(line)[colour]", colour))
            left, top = 2 * (box["x"] - screen["x"]), 2 * (box["y"] - screen["y"])
            right, bottom = left + 2 * box["width"], top + 2 * box["height"]
            part = painted.crop((round(left), round(top), round(right), round(bottom)))
            pixels = part.width * part.height
            assert {each: count for count, each in part.getcolors(pixels)}[ink] > pixels / 5
