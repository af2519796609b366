"""A link shows what it showed where it was copied; where it cannot, the page says so and how to get it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from studio.any_models import save_network
from studio.browser.serving import thread_studio

MISSING = {
    "model=nowhere": ["There is no model nowhere here; demo is shown.", "torchcaps studio nowhere"],
    "model=demo@150": ["demo has no checkpoint of step 150; step 100 is the nearest that is left"],
    "model=demo&rival=gone": ["There is no plain network gone here; small-cnn stands beside demo."],
    "model=demo&set=clothes": ["about the test images clothes; here demo has mnist-sample"],
    "index=500": ["mnist-sample has the test images 0 to 499 here and no 500; 0 is shown."],
    "index=-5&screen=nowhere": ["This link says index=-5, screen=nowhere, which means nothing here"],
    "label=12&capsule=10": ["no class 12; test images of any class", "no class 10; the longest capsule"],
    "input=overlay&first=900": ["mnist-sample has the test images 0 to 499 here and no 900; 0 is shown."],
}
WRITTEN = "wrong => !location.hash.slice(1).split('&').some((part) => wrong.includes(part))"  # the address was mended


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("links")
    return [save_network(folder, name) for name in ("capsnet", "capsnet-em")]


def name_shown(page) -> str:
    return page.locator(".facts dd").first.inner_text()


def test_a_copied_link_shows_the_same_network_on_another_start(open_screens, folders):
    with thread_studio(folders) as address:
        screens = open_screens(address)
        page = screens.go("index=7")  # names no network
        screens.settle()
        link = page.evaluate("() => location.hash.slice(1)")
        shown, lengths = name_shown(page), screens.lengths()
        page.locator("header select").select_option("capsnet-em")
        page.wait_for_function("() => location.hash.includes('model=capsnet-em')")
        assert page.locator("#notices p").count() == 0
    with thread_studio(folders[::-1]) as address:
        screens = open_screens(address)
        page = screens.go(link)
        screens.settle()
        assert (name_shown(page), screens.lengths()) == (shown, lengths)
        assert page.locator("#notices p").count() == 0


def test_what_is_not_here_is_said(screens):
    page = screens.go("model=nowhere")  # as on a start; the others come while the page is open
    for asked, words in MISSING.items():
        page.evaluate("asked => { location.hash = asked; }", asked)
        page.locator("#notices").get_by_text(words[0]).wait_for()
        wrong = {*asked.split("&")} - {"model=demo", "input=overlay"}
        page.wait_for_function(WRITTEN, arg=sorted(wrong))
        notices = page.locator("#notices").inner_text()
        for each in words:
            assert each in notices
        parts = page.evaluate("() => location.hash.slice(1)").split("&")
        assert ("model=demo@100" if "@" in asked else "model=demo") in parts
        assert page.locator("#notices p").count() == len(words) - words.count("torchcaps studio nowhere")
    for _ in range(page.locator("#notices p").count()):
        page.locator("#notices").get_by_role("button", name="Dismiss").first.click()
    assert page.locator("#notices p").count() == 0


def test_a_link_that_is_whole_is_followed_without_a_word(screens):
    page = screens.go("model=demo@100&rival=small-cnn&set=mnist-sample&index=7&capsule=3&label=9")
    screens.settle()
    assert page.locator("#checkpoint").get_attribute("aria-valuetext") == "step 100"
    assert page.locator("#notices p").count() == 0
    page.evaluate("() => { location.hash = 'model=nowhere'; }")
    page.get_by_text("There is no model nowhere here").wait_for()
    page.evaluate("() => { location.hash = 'model=demo&index=8'; }")
    page.locator("#notices p").wait_for(state="detached")


def test_a_checkpoint_that_training_removes_meanwhile_is_said_to_be_gone(open_screens, networks, tmp_path):
    run = tmp_path / "training"
    shutil.copytree(networks[0], run)
    with thread_studio([run]) as address:
        screens = open_screens(address)
        screens.page.clock.install()
        page = screens.go("model=training@100")
        assert page.locator("#checkpoint").get_attribute("aria-valuetext") == "step 100"
        assert page.locator("#notices p").count() == 0
        shutil.rmtree(run / "checkpoints" / "step-00000100")
        page.clock.run_for(6000)  # the page looks at a run every five seconds
        page.get_by_text("training has no checkpoint of step 100; step 64 is the nearest").wait_for()
        page.clock.run_for(1000)
        page.wait_for_function("() => location.hash.includes('training@64')")
        screens.loads_may_fail = True  # the page goes on looking


def test_a_phone_has_room_for_what_is_said(open_screens, studio_address):
    page = open_screens(studio_address, 360, 740).go("model=a-network-with-a-very-long-name-in-one-word")
    page.get_by_text("There is no model a-network").wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
