"""The guide drives the real screens, to the end, by keyboard alone."""

from __future__ import annotations

import re


def test_the_guide_leads_through_the_screens(screens):
    page = screens.go("screen=guide")
    screens.tab_to("#guide-start")
    page.keyboard.press("Enter")
    seen: list[str] = []
    for _ in range(10):
        page.wait_for_selector("#guide-next")
        assert page.locator(".guide math").count() >= 1  # each card has its equation
        words = page.locator(".guide").inner_text()
        assert "on the left" not in words  # a phone has one column
        assert "on the right" not in words
        seen.append(page.locator("nav [aria-current]").inner_text())
        screens.tab_to("#guide-next")
        page.keyboard.press("Enter")
    assert list(dict.fromkeys(seen)) == ["Look", "Dimensions", "Routing", "Overlap", "Affine"]
    for word in ("a capsule", "a coupling coefficient", "a squash"):
        page.get_by_text(f"What is {word}?").click()
    text = page.locator("#screen").inner_text()
    assert "one vector" in text
    assert "add up to 1" in text
    assert "length below 1" in text


def test_a_card_on_a_phone(open_screens, studio_address):
    page = open_screens(studio_address, 360, 740).go("card=3")
    buttons = page.locator(".guide").get_by_role("button", name=re.compile("Back|Next"))
    # Both at one moment: the card moves while the screen above it fills.
    back, forth = buttons.evaluate_all("buttons => buttons.map((button) => button.getBoundingClientRect().y)")
    assert back == forth  # in one row


def test_a_card_shows_its_equation(screens):
    page = screens.go("screen=routing&byHand=1&handStep=3&card=3")
    page.get_by_role("button", name="Eq. 1: Squash").click()
    page.get_by_role("dialog").get_by_text("ops.squash").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Leave").click()
    assert page.locator("#guide-next").count() == 0
