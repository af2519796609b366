"""What every screen has: its state in the address, Python, a PNG, keys, spoken words, one request at a time."""

from __future__ import annotations

import contextlib
import io

import pytest
from benchmarks.studio_process import running_studio

from studio.browser.screens import numbers_in
from torchcaps.data import sample_digits

SCREENS = ("look", "dimensions", "routing", "overlap", "affine")


@pytest.mark.parametrize("screen", ["look", "dimensions", "routing", "affine"])
def test_the_snippet_runs_and_gives_the_same_numbers(screens, screen):
    page = screens.go(f"screen={screen}&index=7&input=test&moves=0,0.1&at=30")
    if screen == "affine":
        page.wait_for_selector("#affine-own")
    page.keyboard.press("p")
    page.wait_for_function("() => document.querySelector('#python')?.textContent.includes('import')")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(page.locator("#python").inner_text(), {})  # what a person would paste
    if screen == "affine":
        shown = float(page.locator("#affine-own + span output").inner_text())
    elif screen == "dimensions":
        shown = float(page.locator("figcaption output").first.inner_text())
    else:
        shown = max(screens.lengths())
    assert any(abs(number - shown) < 6e-3 for number in numbers_in(printed.getvalue()))  # the page rounds


def test_a_drawing_is_in_the_address_and_in_the_snippet(open_screens, studio_address):
    screens = open_screens(studio_address)
    page = screens.go("input=draw")
    screens.draw("7")
    screens.wait_for_class("7")
    screens.settle()  # the address is written when the hand rests
    lengths = screens.lengths()
    other = open_screens(studio_address)
    other.go(page.url.partition("#")[2])
    other.wait_for_class("7")
    assert other.lengths() == lengths
    other.page.keyboard.press("p")
    other.page.wait_for_function("() => document.querySelector('#python')?.textContent.includes('import')")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(other.page.locator("#python").inner_text(), {})
    assert any(abs(number - max(lengths)) < 1e-3 for number in numbers_in(printed.getvalue()))


def test_every_screen_as_png(screens):
    from PIL import Image

    page = screens.go()
    for key, screen in enumerate(SCREENS, start=1):
        page.keyboard.press(str(key))
        screens.settle(200)
        with page.expect_download() as download:
            page.keyboard.press("s")
        assert download.value.suggested_filename == f"torchcaps-{screen}.png"
        with Image.open(download.value.path()) as picture:
            assert picture.width > 1000
            assert len(picture.crop((0, 0, 900, 900)).getcolors(810_000)) > 50  # no empty sheet


def test_keys_and_going_back(screens):
    page = screens.go()
    for key, name in enumerate(("Look", "Dimensions", "Routing", "Overlap", "Affine", "Guide"), start=1):
        page.keyboard.press(str(key))
        assert page.locator("nav [aria-current]").inner_text() == name
    page.go_back()
    page.wait_for_function("() => document.querySelector('nav [aria-current]').textContent === 'Affine'")
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("Keyboard map").wait_for()
    page.keyboard.press("Escape")
    theme = page.evaluate("() => document.documentElement.dataset.theme")
    page.keyboard.press("t")
    assert page.evaluate("() => document.documentElement.dataset.theme") != theme


def test_letters_rest_in_a_dialog_and_where_they_are_not_wanted(screens):
    page = screens.go("screen=routing&byHand=1&handStep=3")
    page.keyboard.press("?")
    page.keyboard.press("n")
    page.get_by_label("Single letters").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    screens.settle()
    assert page.evaluate("() => location.hash").endswith("handStep=3")


@pytest.mark.parametrize("field", ["#overlay-pad", ".tip", "[role=gridcell][tabindex='0']"])
def test_alt_and_an_arrow_are_left_to_the_browser(screens, field):
    screen = {"#overlay-pad": "overlap", ".tip": "routing"}.get(field, "dimensions")
    page = screens.go(f"screen={screen}&input=overlay&byHand=1")
    taken = page.locator(field).first.evaluate(
        "field => !field.dispatchEvent(new KeyboardEvent('keydown', "
        "{ key: 'ArrowLeft', altKey: true, bubbles: true, cancelable: true }))"
    )
    assert not taken


def test_a_dialog_closes_by_a_click_beside_it_only(screens):
    page = screens.go()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    box = dialog.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 4, box["y"] + 200)  # where a scroll bar would be
    assert dialog.is_visible()
    page.mouse.click(box["x"] - 10, box["y"] + 200)
    dialog.wait_for(state="hidden")


def test_the_address_follows_the_last_of_quick_changes(screens):
    page = screens.go("input=draw")
    page.get_by_label("Centre and scale").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Space")
    screens.settle()
    assert page.evaluate("() => location.hash").endswith("&input=draw")
    page.keyboard.press("3")
    page.keyboard.press("Space")
    page.evaluate("() => history.back()")
    page.locator("nav [aria-current]", has_text="Look").wait_for()
    screens.settle()
    assert page.locator("nav [aria-current]").inner_text() == "Look"
    assert page.evaluate("() => location.hash").endswith("&input=draw")


def test_the_answer_is_spoken(screens):
    page = screens.go("index=7")
    page.wait_for_function("() => document.querySelector('[role=status]').textContent.startsWith('Capsule network: ')")
    assert "Plain network" in page.locator("[role=status]").inner_text()


def test_no_answer_is_spoken_with_the_class_of_another_picture(screens):
    labels = sample_digits("test").labels
    page = screens.go("index=7")
    page.evaluate(
        """() => {
          window.spoken = [];
          const status = document.querySelector('[role=status]');
          new MutationObserver(() => spoken.push(status.textContent))
            .observe(status, { characterData: true, childList: true, subtree: true });
        }"""
    )
    page.keyboard.press("]")
    page.locator("p", has_text=f"True class {int(labels[8])}").wait_for()
    screens.settle(100)
    screens.slow_down("/forward", 1200)
    page.keyboard.press("]")
    page.wait_for_function(f"() => spoken.at(-1)?.includes('True class: {int(labels[9])}')")
    spoken = page.evaluate("() => spoken")
    for words in spoken:
        assert words.split("True class: ")[1][0] == words.removeprefix("Capsule network: ")[0], words


def test_no_verdict_before_the_answer(screens):
    labels = sample_digits("test").labels
    page = screens.go("index=7")
    page.get_by_text("recognised").wait_for()
    page.evaluate(
        """() => {
          window.lines = [];
          const note = () => lines.push(...[...document.querySelectorAll('p')].map((line) => line.textContent));
          new MutationObserver(note).observe(document.body, { characterData: true, childList: true, subtree: true });
        }"""
    )
    screens.slow_down("/forward", 250)  # sooner than the sign that people wait
    page.keyboard.press("]")
    page.locator("p", has_text=f"True class {int(labels[8])}").filter(has_text="recognised").wait_for()
    first, *_ = (line for line in page.evaluate("() => lines") if f"True class {int(labels[8])}" in line)
    assert first.strip().endswith("…")


def test_what_failed_is_not_hidden_by_another_answer(screens):
    page = screens.go("screen=routing&index=7")
    page.wait_for_selector("#coefficients")
    screens.loads_may_fail = True
    page.route("**/votes", lambda route: route.fulfill(status=500, json={"error": "no votes today"}))
    screens.slow_down("/forward", 400)
    page.keyboard.press("]")
    alert = page.get_by_role("alert").get_by_text("no votes today")
    alert.wait_for()
    screens.settle(800)
    assert alert.is_visible()  # what is drawn is still the routing of the picture before
    page.unroute("**/votes")
    page.keyboard.press("]")
    alert.wait_for(state="hidden")


def test_statistics_that_failed_are_not_waited_for(screens):
    screens.loads_may_fail = True
    screens.page.route("**/statistics", lambda route: route.fulfill(status=500, json={"error": "no statistics"}))
    page = screens.go("screen=dimensions&range=sigma")
    page.get_by_role("alert").get_by_text("no statistics").wait_for()
    page.keyboard.press("]")
    page.get_by_role("alert").wait_for(state="hidden")
    assert page.get_by_text("Measuring").count() == 0


def test_checkpoints_can_be_scrubbed(screens, networks):
    first = min(int(path.name.removeprefix("step-")) for path in (networks[0] / "checkpoints").glob("step-*"))
    page = screens.go()
    last = screens.lengths()
    page.locator("#checkpoint").focus()
    page.keyboard.press("Home")
    page.wait_for_function("id => location.hash.includes(id)", arg=f"demo@{first}")
    assert page.locator("#checkpoint").get_attribute("aria-valuetext") == f"step {first}"
    page.wait_for_function(
        """last => [...document.querySelectorAll('[data-length]')]
          .some((bar, j) => Math.abs(bar.dataset.length - last[j]) > 1e-3)""",
        arg=last,
    )


def test_one_request_in_flight_and_the_latest_wins(screens):
    page = screens.go("input=draw")
    page.evaluate(
        """() => {
          const fetched = window.fetch;
          let running = 0;
          window.most = 0;
          window.fetch = async (path, options) => {
            if (!path.endsWith('/demo/forward')) return fetched(path, options);
            most = Math.max(most, ++running);
            return fetched(path, options).finally(() => running--);
          };
        }"""
    )
    screens.draw("0")
    screens.wait_for_class("0")
    assert page.evaluate("() => most") == 1


def test_a_slow_answer_is_waited_for_with_a_sign(screens):
    page = screens.go("index=7")
    sign = page.get_by_role("progressbar", name="Waiting")
    screens.slow_down("/forward", 3000)
    page.keyboard.press("]")
    sign.wait_for()
    assert page.locator("#screen").get_attribute("aria-busy") == "true"
    page.locator("p", has_text="True class").filter(has_text="…").wait_for()  # no verdict on another
    sign.wait_for(state="detached")
    assert page.locator("#screen").get_attribute("aria-busy") == "false"


def test_the_png_has_the_bars_of_fractions(screens):
    from PIL import Image

    page = screens.go("screen=routing&byHand=1&handStep=3")
    screen = page.locator("#screen").bounding_box()
    with page.expect_download() as download:
        page.keyboard.press("s")
    with Image.open(download.value.path()) as picture:
        grey = picture.convert("L")
        for fraction in page.locator("#screen mfrac").all():
            box = fraction.bounding_box()
            left, right = 2 * (box["x"] - screen["x"] + 3), 2 * (box["x"] + box["width"] - screen["x"] - 3)
            top, bottom = (2 * (box["y"] - screen["y"] + edge * box["height"]) for edge in (0, 1))
            part = grey.crop((round(left), round(top), round(right), round(bottom)))
            rows = [part.crop((0, y, part.width, y + 1)).getextrema() for y in range(part.height)]
            assert any(lightest < 120 for _, lightest in rows)  # a row of ink from end to end


def test_a_server_that_comes_back_is_found(open_screens, networks):
    models = [str(folder) for folder in networks]
    with running_studio(models) as studio:
        screens = open_screens(studio.address)
        page = screens.go("index=10")
        screens.loads_may_fail = True  # nobody answers between the two servers, nor after them
    page.keyboard.press("]")
    page.get_by_role("alert").wait_for()
    with running_studio(models, "--port", str(studio.port)):
        page.get_by_role("alert").wait_for(state="hidden")
        page.wait_for_function("() => document.querySelector('#index').value === '11'")
        truth = int(sample_digits("test").labels[11])
        page.get_by_text(f"True class {truth}").wait_for()
        page.wait_for_selector("#reconstruction[data-ready=true]")
