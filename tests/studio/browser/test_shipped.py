"""The networks that come along: digits and clothes, each beside the CNN that learned from the same pictures."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from benchmarks.studio_process import running_studio
from PIL import Image

from digit_photographs import photographs
from torchcaps.data import load


@pytest.fixture(scope="module")
def shipped_address() -> Iterator[str]:
    with running_studio([]) as studio:
        yield studio.address


SAMPLES = [("capsnet-mnist", "mnist-sample"), ("capsnet-fashion", "fashion-sample")]


@pytest.mark.parametrize(("model", "sample"), SAMPLES)
def test_each_network_has_pictures_and_a_cnn_of_its_own(open_screens, shipped_address, model, sample):
    source = load(sample)
    index = 9  # both networks and both CNNs are right there
    truth = source.classes[source.test.labels[index]]
    page = open_screens(shipped_address).go(f"model={model}&input=test&index={index}")
    title = f"The longest capsule is {truth}; the plain CNN says {truth}"
    page.wait_for_function(
        "title => document.querySelector('#screen h2').textContent.replace(/\\s+/g, ' ').trim() === title", arg=title
    )
    assert page.locator(f"text={sample}").count() == 1  # says where the picture is from
    assert tuple(page.locator("aside.right .name").all_inner_texts()) == source.classes


def test_a_tablet_has_room_for_the_names_of_clothes(open_screens, shipped_address):
    page = open_screens(shipped_address, 820, 1180).go("model=capsnet-fashion&index=9")
    names = page.locator(".strip b")
    assert tuple(names.all_inner_texts()) == load("fashion-sample").classes
    assert not any(names.evaluate_all("names => names.map(name => name.scrollWidth > name.clientWidth)"))


def test_another_network_is_not_shown_with_the_answer_of_the_last(open_screens, shipped_address):
    screens = open_screens(shipped_address)
    page = screens.go("model=capsnet-mnist")
    screens.slow_down("/forward", 600)
    page.locator("header select").select_option("capsnet-fashion")
    page.wait_for_function("() => document.querySelectorAll('[data-length]').length === 0")
    page.wait_for_selector("#screen h2")
    assert page.locator("#screen h2").first.inner_text().startswith("The longest capsule is ")


def test_an_upload_is_read_anew_for_a_network_of_another_size(open_screens, shipped_address, tmp_path):
    page = open_screens(shipped_address).go("model=capsnet-mnist&input=upload")
    paper = Image.new("L", (90, 90), 255)
    paper.paste(0, (40, 15, 50, 75))  # a one
    paper.save(tmp_path / "one.png")
    page.set_input_files("#file", tmp_path / "one.png")
    page.get_by_text("The longest capsule is 1").wait_for()
    page.locator("header select").select_option("capsnet-multimnist")
    page.get_by_text("36×36 pixels").wait_for()
    page.get_by_text("The longest capsules are 1 and ").wait_for()


def test_pairs_have_no_cnn_beside_them(open_screens, shipped_address):
    page = open_screens(shipped_address).go("model=capsnet-multimnist")
    page.wait_for_function("name => document.querySelector('.facts dd').textContent === name", arg="capsnet-multimnist")
    page.wait_for_selector(".rival >> text=None is loaded for such pictures.")


def test_a_photograph_is_read_and_an_empty_sheet_is_no_class(open_screens, shipped_address, tmp_path):
    page = open_screens(shipped_address).go("model=capsnet-mnist&input=upload")
    file = tmp_path / "photograph.jpg"
    for photograph in photographs([4, 15, 25, 46]):
        file.write_bytes(photograph.jpeg)
        page.set_input_files("#file", file)
        page.get_by_text(f"The longest capsule is {photograph.digit}").wait_for()
    page.get_by_text("Inverted.").wait_for()
    random = np.random.default_rng(0)
    for name, sides, said in (
        ("sheet", (300, 400), "There is no ink on the picture"),
        ("noise", (28, 28), "No class is there"),
    ):
        pixels = random.normal(200, 6, sides) if name == "sheet" else random.integers(0, 256, sides)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(tmp_path / f"{name}.png")
        page.set_input_files("#file", tmp_path / f"{name}.png")
        page.get_by_text(said).wait_for()
