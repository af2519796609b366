"""Networks of other kinds than the usual one: every screen shows what it can, and the console stays silent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from studio.any_models import NETWORKS, save_network
from studio.browser.files import file_server
from studio.browser.serving import thread_studio
from torchcaps.data import sample_digits
from torchcaps.eval import load_model

INDEX = 12
LOADED = ("efficient-capsnet", "capsnet-em", "capsnet-attention", "matrix-capsules", "colour", "single")
WORDS = ("T-shirt/top", "Trouser", "Ankle boot")


def picture() -> torch.Tensor:
    return sample_digits("test").images[[INDEX]].float() / 255


@pytest.fixture(scope="module")
def any_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import torchcaps

    folder = tmp_path_factory.mktemp("any")
    for name in LOADED:
        if name in NETWORKS:
            save_network(folder, name)
    deep = {**NETWORKS["capsnet-deep"], "image_shape": (3, 24, 32), "num_classes": 3}
    torchcaps.create_model(**deep).save_pretrained(folder / "colour")
    (folder / "colour" / "environment.json").write_text(json.dumps({"data": {"classes": WORDS}}))
    torchcaps.create_model(**NETWORKS["capsnet"], num_classes=1).save_pretrained(folder / "single")
    return folder


@pytest.fixture(scope="module")
def any_address(any_folder: Any) -> Iterator[str]:
    with thread_studio([any_folder / name for name in LOADED]) as address:
        yield address


@pytest.fixture(scope="module")
def any_site(any_folder: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from torchcaps.studio import Catalogue, export_site, looking

    folder = tmp_path_factory.mktemp("export")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looking, "MOST_SURVEYED", 20)  # the statistics do not matter here
        export_site(Catalogue([any_folder / name for name in ("capsnet-em", "efficient-capsnet")]), folder / "site", 2)
    with file_server(folder / "site") as address:
        yield address


def read_program(page: Any) -> None:
    """Open what stands behind "Python", and close it."""
    page.keyboard.press("p")
    page.wait_for_function("() => document.querySelector('#python')?.textContent.includes('import torch')")
    page.keyboard.press("Escape")
    page.wait_for_selector("#python", state="hidden")


@pytest.mark.parametrize("name", ["efficient-capsnet", "capsnet-attention", "colour"])
def test_every_screen(open_screens, any_address, any_folder, name):
    model = load_model(str(any_folder / name)).eval()
    screens = open_screens(any_address)
    page = screens.go(f"model={name}&index={INDEX}")
    page.wait_for_function("name => document.querySelector('.facts dd').textContent === name", arg=name)
    if name != "colour":
        with torch.no_grad():
            lengths = model(picture()).lengths[0]
        torch.testing.assert_close(torch.tensor(screens.lengths()), lengths, atol=1e-5, rtol=0)
    assert page.locator("#reconstruction").count() == 1
    read_program(page)
    page.keyboard.press("2")
    page.wait_for_selector("canvas[data-done=true]")
    page.locator("[data-dimension='1']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("3")
    if model.architecture == "capsnet":
        page.wait_for_selector("#own-routing")
        assert page.locator("#rounds").is_disabled()
        page.wait_for_selector("#coefficients")
        assert page.locator(".parts svg path").count() > 100
        shown = torch.tensor([float(cell) for cell in screens.table("#iterations")[-1][-10:]])
        torch.testing.assert_close(shown, torch.tensor(screens.lengths()), atol=1e-4, rtol=0)
    else:
        page.wait_for_selector("#no-grid")
        page.get_by_role("button", name="Route by hand").click()
        page.wait_for_selector("#hand-table")
    read_program(page)
    page.keyboard.press("4")
    page.get_by_role("button", name=f"Overlay two {'things' if name == 'colour' else 'digits'}").click()
    page.wait_for_selector("#pair[data-ready=true]")
    page.keyboard.press("5")
    page.wait_for_selector("#affine-own")
    page.keyboard.press("6")
    page.wait_for_selector("#guide-start")


@pytest.mark.parametrize("screen", ["look", "routing"])
def test_classes_that_are_words_are_shown_whole(open_screens, any_address, screen):
    page = open_screens(any_address).go(f"model=colour&screen={screen}")
    page.wait_for_function("name => document.querySelector('.facts dd').textContent === name", arg="colour")
    names = page.locator("aside.right .name")
    assert tuple(names.all_inner_texts()) == WORDS
    assert names.evaluate_all("all => all.every((name) => name.scrollWidth <= name.clientWidth)")
    if screen == "look":
        shown = page.locator("#screen svg text").all_text_contents()
        assert [text for text in shown if text in WORDS] == list(WORDS)


def test_a_network_of_one_class(open_screens, any_address):
    screens = open_screens(any_address)
    page = screens.go("model=single")
    page.wait_for_function("() => document.querySelector('[role=status]').textContent.startsWith('Capsule network: ')")
    for key in "2345":
        page.keyboard.press(key)
        screens.settle(200)


def test_only_grey_pictures_are_said_to_be_inverted(open_screens, any_address):
    screens = open_screens(any_address)
    assert screens.go("model=capsnet-em&input=upload").get_by_text("paper is inverted").count() == 1
    assert screens.go("model=colour&input=upload").get_by_text("paper is inverted").count() == 0


def test_without_a_decoder(open_screens, any_address):
    page = open_screens(any_address).go("model=matrix-capsules")
    assert page.locator("#reconstruction").count() == 0
    for key in "24":
        page.keyboard.press(key)
        page.wait_for_selector("#screen p.card >> text=no decoder")
        read_program(page)


def test_another_network_is_a_click_away(open_screens, any_address, any_folder):
    screens = open_screens(any_address)
    page = screens.go(f"model=efficient-capsnet&screen=routing&index={INDEX}")
    page.locator("#no-grid").get_by_role("button", name="capsnet-em").click()
    page.wait_for_selector("#coefficients")
    with torch.no_grad():
        out = load_model(str(any_folder / "capsnet-em")).eval()(picture(), return_trace=True)
    assert out.trace is not None
    rows = torch.tensor([[float(cell) for cell in row] for row in screens.table("#iterations")])
    torch.testing.assert_close(rows[:, 1], out.trace.entropy()[:, 0], atol=1e-4, rtol=0)  # five digits are shown
    torch.testing.assert_close(rows[-1, 2:], out.lengths[0], atol=1e-4, rtol=0)
    assert "Activation of each capsule" in page.locator("aside.right").inner_text()


def test_as_files(open_screens, any_site):
    """What the page cannot compute itself is written down for the examples."""
    screens = open_screens(any_site)
    page = screens.go("screen=routing")
    page.wait_for_selector("#coefficients")
    page.keyboard.press("5")
    page.wait_for_selector("#affine-own")
    page = screens.go("model=efficient-capsnet&screen=dimensions")
    page.wait_for_selector("canvas[data-done=true]")
    page.get_by_text("Draw", exact=True).click()
    page.get_by_text("for the examples of this export only").wait_for()
    assert screens.lengths() == []  # no answer of another picture is left


def test_a_phone_can_change_an_input_that_has_no_answer(open_screens, any_site):
    page = open_screens(any_site, 390, 844).go("")
    page.goto(f"{any_site}#model=efficient-capsnet&input=draw")
    page.reload()
    page.get_by_text("for the examples of this export only").wait_for()
    page.get_by_role("button", name="Change").click()
    page.get_by_text("Test", exact=True).click()
    page.wait_for_selector("#reconstruction[data-ready=true]")


def test_what_waits_for_one_network_is_not_asked_of_the_next(open_screens, any_address):
    screens = open_screens(any_address)
    page = screens.go("model=colour")
    page.wait_for_selector("#reconstruction[data-ready=true]")
    screens.slow_down("/decode", 600)
    for j in (0, 1, 2):
        page.locator("aside.right ul button").nth(j).click()
    page.select_option("header select", "capsnet-em")
    screens.settle(1500)
    assert page.get_by_role("alert").count() == 0


def test_no_picture_is_asked_for_in_the_set_of_another_network(open_screens, any_address):
    """An address may change the network and the picture while one of the last network is waited for."""
    screens = open_screens(any_address)
    page = screens.go("model=capsnet-em&index=3")
    screens.slow_down("api/examples", 400)
    page.keyboard.press("]")
    page.keyboard.press("]")
    page.evaluate("() => { location.hash = 'model=efficient-capsnet&index=700'; }")
    screens.settle(1500)
    assert page.get_by_role("alert").count() == 0
    assert page.locator("#index").input_value() == "0"
