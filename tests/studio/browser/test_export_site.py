"""An exported site works from a plain file server, without Python."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from digit_photographs import photographs
from studio.browser.conftest import STATIC
from studio.browser.files import file_server
from studio.browser.screens import numbers_in
from torchcaps.data import sample_digits
from torchcaps.studio import Catalogue
from torchcaps.studio.uploads import read_upload


@pytest.fixture(scope="module")
def site_address(networks, tmp_path_factory):
    from torchcaps.cli.app import main

    folder = tmp_path_factory.mktemp("export") / "site"
    assert main(["studio", "export", str(folder), *map(str, networks), "--examples", "4"]) == 0
    with file_server(folder.parent) as address:
        yield f"{address}site/"  # a prefix, as on a project's page


def test_every_screen_works_without_a_server(open_screens, site_address):
    screens = open_screens(site_address)
    page = screens.go()
    assert max(screens.lengths()) > 0.5
    page.keyboard.press("2")
    page.wait_for_selector("canvas[data-done=true]")
    page.keyboard.press("3")
    page.wait_for_selector("#coefficients")
    page.keyboard.press("5")
    page.wait_for_selector("#affine-rival")
    page = screens.go("input=draw")
    screens.draw("1")
    screens.wait_for_class("1")
    page.keyboard.press("5")
    page.wait_for_selector("#affine-own")
    page.keyboard.press("4")
    page.get_by_role("button", name="Overlay two digits").click()
    page.wait_for_selector("#pair[data-ready=true]")


def test_a_page_from_the_disk_says_what_it_needs(chromium, open_screens, site_address):
    page = chromium.new_page()
    page.goto((STATIC / "index.html").as_uri())
    assert "python -m http.server" in page.locator("body").inner_text()
    page.close()
    page = open_screens(site_address).go()
    assert page.get_by_text("http.server").count() == 0


def test_the_guide_takes_the_pictures_that_are_there(open_screens, site_address):
    screens = open_screens(site_address)
    page = screens.go("screen=guide")
    page.click("#guide-start")
    for _ in range(10):
        screens.settle(150)
        assert page.get_by_role("alert").count() == 0
        page.click("#guide-next")
    page = screens.go("index=499&input=overlay&first=498&second=497")
    page.locator("#notices").get_by_text("has 4 test images here and no 499;").wait_for()
    page.get_by_label("Test", exact=True).check(force=True)
    page.wait_for_selector("#seen[data-ready=true]")
    assert page.get_by_role("alert").count() == 0


def test_its_snippets_run(open_screens, site_address, networks):
    screens = open_screens(site_address)
    for screen in ("look", "dimensions", "routing", "overlap", "affine"):
        page = screens.go(f"screen={screen}&input={'overlay' if screen == 'overlap' else 'test'}&moves=0,0.1&at=25")
        page.keyboard.press("p")
        code = page.locator("#python").inner_text().replace('"demo"', repr(str(networks[0])))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, {})  # what a person would paste
        if screen in ("look", "routing", "overlap"):  # the page's weights are half precision
            longest = max(screens.lengths())
            assert any(abs(number - longest) < 2e-3 for number in numbers_in(printed.getvalue()))


def test_two_digits_are_laid_over_each_other_for_a_network_of_pairs(open_screens, pairs_run, tmp_path):
    from torchcaps.cli.app import main

    assert main(["studio", "export", str(tmp_path / "site"), str(pairs_run), "--no-compare", "--examples", "4"]) == 0
    with file_server(tmp_path) as address:
        screens = open_screens(f"{address}site/")
        page = screens.go("screen=overlap&input=overlay")
        page.wait_for_selector("#pair[data-ready=true]")
        assert page.locator("button .hidden-text", has_text="true class").count() == 2  # and not the four of two pairs


def test_a_written_example_needs_no_encoder(open_screens, site_address, networks):
    """Its megabytes are for drawings; the answers to the examples lie beside it, in full precision."""
    screens = open_screens(site_address)
    asked: list[str] = []
    screens.page.on("request", lambda request: asked.append(request.url))
    page = screens.go("screen=routing")
    page.wait_for_selector("#coefficients")
    index = int(page.locator("#index").input_value())
    network = Catalogue([networks[0]]).network("demo")
    with torch.no_grad():
        expected = network.model(sample_digits("test").images[[index]].float() / 255).lengths[0]
    torch.testing.assert_close(torch.tensor(screens.lengths()), expected, atol=1e-5, rtol=0)
    assert not [url for url in asked if "encoder" in url]


def test_an_encoder_that_cannot_start_is_an_error_in_words(open_screens, site_address):
    screens = open_screens(site_address)
    screens.loads_may_fail = True
    screens.page.route("**/worker.js", lambda route: route.abort())
    page = screens.go()
    page.get_by_text("Draw", exact=True).click()
    page.get_by_role("alert").get_by_text("encoder").wait_for()


def _stroke(height: int, width: int, ground: int, ink: int) -> Image.Image:
    pixels = np.full((height, width), ground, dtype=np.uint8)
    pixels[height // 8 : height // 2, width // 4 : width // 3] = ink
    pixels[height // 2 : height // 2 + height // 16, width // 4 : width // 2] = ink
    return Image.fromarray(pixels)


@pytest.mark.parametrize(
    ("digits", "published"), [(True, True), (False, True), (False, False)], ids=["digits", "things", "own"]
)
@pytest.mark.parametrize(
    "sheet",
    [(224, 168, 150, 30), (168, 224, 20, 230), (28, 28, 0, 255), None],
    ids=["shade", "board", "small", "photograph"],
)
def test_an_upload_is_read_as_the_server_reads_it(
    open_screens, site_address, networks, tmp_path, sheet, digits, published
):
    screens = open_screens(site_address)

    def other_things(route):
        models = route.fetch().json()
        route.fulfill(json=[{**model, "digits": digits, "white_on_black": published} for model in models])

    screens.page.route("**/models.json", other_things)
    page = screens.go("input=upload")
    file = tmp_path / "sheet.png"
    if sheet is None:
        file.write_bytes(photographs([44])[0].jpeg)  # in a shadow, on squared paper, at an angle, on a table
    else:
        _stroke(*sheet).save(file)
    page.set_input_files("#file", file)
    page.get_by_text("The file stays in this browser.").wait_for()
    page.wait_for_function("() => document.querySelector('h2:not(.hidden-text)').textContent.includes('longest')")
    network = Catalogue([networks[0]]).network("demo")
    network.__dict__["form"] = replace(network.form, digits=digits, white_on_black=published)
    expected = read_upload(file.read_bytes(), network, "auto")
    assert page.get_by_text("Inverted." if expected.inverted else "Taken as it is.").count() == 1
    seen = screens.grey("#seen").view(28, 28).float() / 255
    assert (seen - expected.pixels[0] / 255).abs().mean() < 0.04  # the two scale by other filters
