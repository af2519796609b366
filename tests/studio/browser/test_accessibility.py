"""axe-core finds nothing to complain of, and nothing sticks out of a phone's screen."""

from __future__ import annotations

from pathlib import Path

import pytest

AXE = Path(__file__).parents[3] / "studio-web" / "node_modules" / "axe-core" / "axe.min.js"
STATES = {
    "look": "screen=look",
    "dimensions": "screen=dimensions&moves=0,0.1",
    "routing": "screen=routing",
    "by-hand": "screen=routing&byHand=1&handStep=4",
    "overlap": "screen=overlap&input=overlay",
    "affine": "screen=affine&input=draw",
    "guide": "screen=guide",
    "card": "screen=routing&byHand=1&card=3&input=upload",
    "questions": "screen=guide&card=10",
}


@pytest.fixture(params=["light-wide", "dark-phone"])
def look(request, open_screens, studio_address):
    theme, _, size = request.param.partition("-")
    width, height = (1280, 800) if size == "wide" else (390, 844)
    # axe is put into the page by the test, which the page's own policy would refuse.
    return open_screens(studio_address, width, height, color_scheme=theme, bypass_csp=True, reduced_motion="reduce")


def complaints(page) -> list[str]:
    found = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {node['html'][:120]}" for each in found for node in each["nodes"]]


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core; npm ci in studio-web installs it")
def test_axe_finds_no_violation(look):
    page = look.go()
    page.add_script_tag(path=AXE)
    for state in STATES.values():
        page.evaluate("state => { location.hash = state; }", state)
        look.settle()
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, f"{state} sticks out"
        for twin in page.locator("#screen details > summary").all():
            twin.click()
        assert complaints(page) == [], state
    for key in ("?", "e", "p"):
        page.keyboard.press(key)
        page.get_by_role("dialog").wait_for()
        assert complaints(page) == [], key
        page.keyboard.press("Escape")


def test_drawing_on_a_phone(open_screens, studio_address):
    screens = open_screens(studio_address, 390, 844, has_touch=True)
    page = screens.go("input=draw")
    page.get_by_role("button", name="Change").click()
    screens.draw("1")
    page.wait_for_function("() => document.querySelector('.bars').ariaLabel.includes('longest is 1')")


def test_another_class_is_chosen_on_a_phone(open_screens, studio_address):
    page = open_screens(studio_address, 390, 844, has_touch=True).go("screen=routing")
    page.get_by_role("button", name="8, length").tap()
    page.get_by_text("Who votes for 8?").wait_for()
    page.get_by_role("button", name="8, length", pressed=True).tap()
    page.get_by_text("Who votes for 8?").wait_for(state="hidden")


def test_a_second_finger_leaves_the_drawing_alone(open_screens, studio_address):
    screens = open_screens(studio_address, 390, 844, has_touch=True)
    page = screens.go("input=draw")
    page.get_by_role("button", name="Change").click()
    box = page.locator("#pad").bounding_box()
    touches = page.context.new_cdp_session(page)

    def touch(kind, *places):
        points = [
            {"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"], "id": n}
            for n, (x, y) in enumerate(places)
        ]
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (0.5, 0.1))
    for step in range(2, 7):
        touch("touchMove", (0.5, step / 10))
    touch("touchStart", (0.5, 0.6), (0.9, 0.9))
    touch("touchMove", (0.5, 0.7), (0.8, 0.9))
    touch("touchMove", (0.5, 0.9), (0.7, 0.9))
    touch("touchEnd")
    screens.settle(200)
    drawn = screens.grey("#pad").view(140, 140)
    assert bool((drawn[20:120, 70] > 200).all())  # the stroke is whole
    assert bool((drawn[:, 100:] == 0).all())


def test_bars_are_seen_in_colours_of_the_system(open_screens, studio_address):
    page = open_screens(studio_address, forced_colors="active").go()
    colours = "bars => new Set(bars.map((bar) => getComputedStyle(bar).backgroundColor)).size"
    assert page.locator("aside.right .bar").evaluate_all(colours) == 2  # the longest, and the others
