"""Networks of other kinds than the usual one: every screen shows what it can, and the console stays silent."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from studio.any_models import NETWORKS, save_network
from torchcaps.data import sample_digits
from torchcaps.eval import load_model

INDEX = 12
SHOWN = ("efficient-capsnet", "capsnet-em", "capsnet-attention", "matrix-capsules", "colour")


@pytest.fixture(scope="module")
def any_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import torchcaps

    folder = tmp_path_factory.mktemp("any")
    for name in SHOWN:
        if name in NETWORKS:
            save_network(folder, name)
    deep = {**NETWORKS["capsnet-deep"], "image_shape": (3, 24, 32), "num_classes": 3}
    torchcaps.create_model(**deep).save_pretrained(folder / "colour")
    return folder


@pytest.fixture(scope="module")
def any_address(any_folder: Any) -> Iterator[str]:
    """A studio in a thread; the networks are so small that a process of its own would not pay."""
    from torchcaps.studio import Catalogue, serve

    lines: queue.Queue[str] = queue.Queue()
    running: queue.Queue[Any] = queue.Queue()
    catalogue = Catalogue([any_folder / name for name in SHOWN])
    arguments = {"browser": False, "say": lines.put, "on_start": running.put}
    thread = threading.Thread(target=serve, args=(catalogue,), kwargs=arguments)
    thread.start()
    line = lines.get(timeout=30)
    yield line[line.index("http://") :].split()[0]
    running.get(timeout=30).should_exit = True
    thread.join(timeout=30)


@pytest.mark.parametrize("name", SHOWN)
def test_every_screen(open_screens, any_address, any_folder, name):
    model = load_model(str(any_folder / name)).eval()
    screens = open_screens(any_address)
    page = screens.go(f"model={name}&index={INDEX}")
    page.wait_for_function("name => document.querySelector('.facts dd').textContent === name", arg=name)
    if name != "colour":
        with torch.no_grad():
            lengths = model(sample_digits("test").images[[INDEX]].float() / 255).lengths[0]
        torch.testing.assert_close(torch.tensor(screens.lengths()), lengths, atol=1e-5, rtol=0)
    assert page.locator("#reconstruction").count() == (model.decoder is not None)

    page.keyboard.press("2")
    page.wait_for_selector("canvas[data-done=true]" if model.decoder else "#screen p.card >> text=no decoder")
    if model.decoder:
        page.locator("[data-dimension='1']").focus()
        page.keyboard.press("ArrowRight")
    page.keyboard.press("3")
    if model.architecture == "capsnet":
        page.wait_for_selector("#own-routing")
        assert page.locator("#rounds").is_disabled()
        assert page.locator("#coefficients").count() == 1
        assert page.locator(".parts svg path").count() > 0
        rows = screens.table("#iterations")
        shown = torch.tensor([float(cell) for cell in rows[-1][-10:]])
        torch.testing.assert_close(shown, torch.tensor(screens.lengths()), atol=1e-4, rtol=0)
    else:
        page.wait_for_selector("#no-grid")
        page.get_by_role("button", name="Route by hand").click()
        page.wait_for_selector("#hand-table")
    page.keyboard.press("4")
    page.get_by_role("button", name="Overlay two digits").click()
    page.wait_for_selector("#pair[data-ready=true]" if model.decoder else "#screen p.card >> text=no decoder")
    page.keyboard.press("5")
    page.wait_for_selector("#affine-own")
    page.keyboard.press("6")
    page.wait_for_selector("#guide-start")


@pytest.mark.parametrize("screen", ["look", "dimensions", "routing", "overlap", "affine"])
def test_every_screen_has_a_program(open_screens, any_address, screen):
    screens = open_screens(any_address)
    for name in ("matrix-capsules", "capsnet-em", "colour"):
        page = screens.go(f"model={name}&screen={screen}")
        page.keyboard.press("p")
        page.wait_for_function("() => document.querySelector('#python')?.textContent.includes('import torch')")


def test_another_network_is_a_click_away(open_screens, any_address):
    page = open_screens(any_address).go("model=efficient-capsnet&screen=routing")
    page.locator("#no-grid").get_by_role("button", name="capsnet-em").click()
    page.wait_for_selector("#coefficients")
