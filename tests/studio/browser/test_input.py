"""Every way to give the studio a picture, with the mouse and by keyboard alone."""

from __future__ import annotations

import pytest
import torch

from published_files import write_picture_folder
from studio.browser.serving import thread_studio
from studio.own_runs import own_run
from torchcaps.data import load, sample_digits


@pytest.fixture(scope="module")
def paper_five(tmp_path_factory):
    """A five as a photograph has it: dark ink on bright paper, larger than the network takes."""
    from PIL import Image, ImageOps

    test = sample_digits("test")
    index = int((test.labels == 5).nonzero()[0])
    digit = Image.fromarray(test.images[index, 0].numpy()).resize((224, 224))
    path = tmp_path_factory.mktemp("pictures") / "five.png"
    ImageOps.invert(digit).save(path)
    return path


@pytest.mark.parametrize("digit", ["0", "1", "7"])
def test_a_digit_drawn_with_the_mouse_is_recognised(screens, digit):
    page = screens.go("input=draw")
    screens.draw(digit)
    screens.wait_for_class(digit)
    assert screens.grey("#seen").max() > 200
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Draw a digit").wait_for()


def test_a_digit_drawn_by_keyboard_is_recognised(screens):
    page = screens.go()
    screens.tab_to("input[type=radio]")
    page.keyboard.press("ArrowRight")  # from Test to Draw
    screens.tab_to("#pad")
    page.keyboard.press("Space")
    for _ in range(14):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    screens.wait_for_class("1")
    page.keyboard.press("Delete")
    page.get_by_text("Draw a digit").wait_for()


def test_a_dark_digit_on_paper_is_inverted_and_recognised(screens, paper_five):
    page = screens.go("input=upload")
    page.set_input_files("#file", paper_five)
    screens.wait_for_class("5")
    page.get_by_text("Inverted.").wait_for()
    page.get_by_text("As it is").click()
    page.get_by_text("Taken as it is.").wait_for()


def test_the_last_choice_of_inversion_wins(screens, paper_five):
    page = screens.go("input=upload")
    page.set_input_files("#file", paper_five)
    page.get_by_text("Inverted.").wait_for()
    screens.slow_down("invert=yes", 800)
    page.get_by_text("Invert", exact=True).click()
    page.get_by_text("As it is", exact=True).click()
    page.get_by_text("Taken as it is.").wait_for()
    screens.settle(1500)
    assert page.get_by_text("Taken as it is.").is_visible()


def test_a_file_can_be_chosen_again_and_stays_while_other_inputs_are_shown(screens, paper_five):
    page = screens.go("input=upload")
    page.set_input_files("#file", paper_five)
    page.get_by_text("Inverted.").wait_for()
    assert page.locator("#file").evaluate("field => field.value") == ""  # else the same file is no change
    page.get_by_text("Test", exact=True).click()
    page.get_by_text("Upload", exact=True).click()
    page.get_by_text("As it is", exact=True).click()
    page.get_by_text("Taken as it is.").wait_for()
    screens.settle()  # until the address is written
    page.reload()
    page.get_by_text("For the next picture").wait_for()  # a switch that does nothing now says so


def test_upload_by_keyboard(screens, paper_five):
    page = screens.go()
    page.on("filechooser", lambda chooser: chooser.set_files(paper_five))
    screens.tab_to("input[type=radio]")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    screens.tab_to("[aria-label='Upload a picture'] button")
    page.keyboard.press("Enter")
    screens.wait_for_class("5")


def test_a_pasted_picture_is_taken(screens, paper_five):
    page = screens.go("input=upload")
    page.evaluate(
        """bytes => {
          const data = new DataTransfer();
          data.items.add(new File([new Uint8Array(bytes)], 'five.png', { type: 'image/png' }));
          window.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, cancelable: true }));
        }""",
        list(paper_five.read_bytes()),
    )
    screens.wait_for_class("5")


def test_what_is_no_picture_is_refused_in_words(screens, tmp_path):
    page = screens.go("input=upload")
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"not a picture")
    screens.loads_may_fail = True
    page.set_input_files("#file", broken)
    page.get_by_role("alert").wait_for()
    assert len(page.get_by_role("alert").inner_text()) > 20


def test_test_images_by_class_and_index(screens):
    page = screens.go()
    page.select_option("#label", "3")
    page.get_by_text("50 of 500").wait_for()
    assert page.locator("#index").input_value() == "98"  # a 3, and so it stays
    page.get_by_role("button", name="Random").click()
    page.wait_for_function("() => document.body.innerText.includes('True class 3')")
    page.fill("#index", "0")
    page.keyboard.press("Enter")
    truth = int(sample_digits("test").labels[0])
    page.wait_for_function(f"() => document.body.innerText.includes('True class {truth}')")


def test_a_filter_moves_to_the_first_picture_that_fits(screens):
    page = screens.go()
    page.select_option("#label", "5")
    page.wait_for_function("() => document.body.innerText.includes('True class 5')")
    assert page.locator("#index").input_value() == str(int((sample_digits("test").labels == 5).nonzero()[0]))
    page.get_by_label("Only mistakes").check()
    page.get_by_text("taken for").wait_for()


def test_an_address_keeps_its_picture_beside_a_filter(screens):
    page = screens.go("index=98&label=5")
    page.get_by_text("50 of 500").wait_for()
    screens.settle()
    assert page.locator("#index").input_value() == "98"


def test_a_class_that_is_not_there_is_any_class(screens):
    page = screens.go("label=99")
    page.get_by_text("500 of 500").wait_for()
    assert page.locator("#label").evaluate("field => field.selectedOptions[0]?.text") == "any"
    page.wait_for_function("() => location.hash && !location.hash.includes('label')")


def test_the_index_field_shows_what_is_taken(screens):
    page = screens.go()
    page.fill("#index", "5000")
    page.keyboard.press("Enter")
    assert page.locator("#index").input_value() == "499"
    page.wait_for_function("() => location.hash.endsWith('&index=499')")
    page.fill("#index", "")
    page.keyboard.press("Enter")
    assert page.locator("#index").input_value() == "499"


def test_keys_before_anything_is_loaded(screens):
    screens.page.route("**/api/models", lambda route: screens.page.keyboard.press("]") or route.continue_())
    page = screens.go()
    assert "index" not in page.evaluate("() => location.hash")
    assert page.locator("#index").input_value() == "98"


def test_only_mistakes(screens):
    page = screens.go()
    page.get_by_label("Only mistakes").check()
    page.wait_for_function("() => !document.body.innerText.includes('500 of 500')")
    page.keyboard.press("]")
    page.get_by_text("taken for").wait_for()


def test_a_picture_of_ones_own_is_shown_with_the_name_of_its_file(open_screens, tmp_path):
    source = write_picture_folder(tmp_path / "pets", {"cat": 10, "dog": 10, "owl": 10}, size=40)
    files = load(f"folder:{source}").test.files
    run = own_run(tmp_path / "mine", source, (1, 32, 32))
    with thread_studio([run]) as address:
        screens = open_screens(address)
        page = screens.go("index=1")
        assert page.locator(".file").inner_text() == files[1]
        page.get_by_label("Only mistakes").check()
        mistakes = page.locator("#mistake option")
        mistakes.first.wait_for(state="attached")
        screens.settle()
        named = {name for text in mistakes.all_inner_texts() for name in files if text.endswith(f" · {name}")}
        assert len(named) == mistakes.count() > 0  # a network that has learned nothing
        last = mistakes.last.inner_text()
        page.locator("#mistake").select_option(last)
        page.locator(".file", has_text=last.split(" · ")[1]).wait_for()
        page.get_by_text("taken for").wait_for()
        screens.loads_may_fail = True  # the page goes on looking for new checkpoints


def test_a_filter_that_answers_late_is_not_taken(screens):
    page = screens.go()
    screens.slow_down("only_mistakes_of", 800)
    page.get_by_label("Only mistakes").check()
    page.wait_for_timeout(50)
    page.get_by_label("Only mistakes").uncheck()
    screens.settle(1500)
    assert page.get_by_text("500 of 500").is_visible()


def test_the_drawing_is_centred_as_mnist_is(screens):
    page = screens.go("input=draw")
    box = page.locator("#pad").bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 30)  # a small stroke in a corner
    page.mouse.down()
    page.mouse.move(box["x"] + 30, box["y"] + 80, steps=5)
    page.mouse.up()
    screens.settle(200)
    seen = screens.grey("#seen").view(28, 28).float()
    rows = (seen.sum(1) > 0).nonzero()
    assert 18 <= int(rows.max() - rows.min()) <= 22
    middle = (seen.sum(1) * torch.arange(28)).sum() / seen.sum()
    assert abs(float(middle) - 13.5) < 0.6
