"""Routing step by step: what is shown is what PyTorch computes."""

from __future__ import annotations

import math
import urllib.request

import pytest
import torch
from safetensors.torch import load, save

from torchcaps import ops
from torchcaps.data import sample_digits
from torchcaps.eval import load_model

INDEX = 12
BEAT = 900  # milliseconds an iteration while playing


@pytest.fixture(scope="module")
def trace(networks):
    """Of R = 5; its first iterations are those of a smaller R."""
    model = load_model(str(networks[0])).eval()
    with torch.no_grad():
        lower = model.lower_capsules(sample_digits("test").images[[INDEX]].float() / 255)
        votes = ops.votes(lower, model.classes.weight)
        return ops.dynamic_routing(votes, 5, model.classes.bias, return_trace=True)[1]


def shown_coefficients(screens) -> tuple[torch.Tensor, torch.Tensor]:
    rows = screens.table("#coefficients")
    capsules = torch.tensor([int(row[1]) for row in rows])
    return capsules, torch.tensor([[float(cell) for cell in row[2:]] for row in rows])


def check_iteration(screens, trace, iteration: int) -> None:
    capsules, shown = shown_coefficients(screens)
    expected = trace.coefficients[iteration - 1, 0, capsules]
    torch.testing.assert_close(shown, expected, atol=1e-4, rtol=0)


def test_coefficients_of_every_step_equal_pytorch(screens, trace):
    page = screens.go(f"screen=routing&index={INDEX}&group=top&strongest=30&rounds=5")
    page.wait_for_selector("#coefficients")
    for iteration in (5, 1, 2, 3, 4):
        page.locator("#iteration").fill(str(iteration))
        check_iteration(screens, trace, iteration)
    rows = screens.table("#iterations")
    entropy = torch.tensor([float(row[1]) for row in rows])
    torch.testing.assert_close(entropy, trace.entropy()[:, 0], atol=1e-4, rtol=0)
    lengths = torch.tensor([[float(cell) for cell in row[2:]] for row in rows])
    torch.testing.assert_close(lengths, ops.capsule_lengths(trace.outputs[:, 0]), atol=1e-4, rtol=0)


def test_stepping_by_keyboard(screens, trace):
    page = screens.go(f"screen=routing&index={INDEX}&group=top&strongest=8")
    page.wait_for_selector("#coefficients")
    screens.tab_to("#iteration")
    page.keyboard.press("Home")
    screens.tab_to("#rounds")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    check_iteration(screens, trace, 5)


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
@pytest.mark.parametrize("rounds", [1, 3, 10])
def test_play_goes_from_the_first_iteration_to_the_last_and_stops(open_screens, studio_address, rounds, motion):
    screens = open_screens(studio_address, reduced_motion=motion)
    screens.page.clock.install()
    page = screens.go(f"screen=routing&index={INDEX}&rounds={rounds}")
    page.wait_for_selector("#coefficients")
    button, iteration = page.locator("button.play"), page.locator("#iteration")
    assert button.inner_text() == "Play"
    assert button.is_disabled() == (rounds == 1)  # nothing to play
    for _ in range(2 if rounds == 3 else rounds > 1):  # it can be played again
        button.click()
        seen = [iteration.input_value()]
        while button.inner_text() == "Pause" and len(seen) <= rounds:
            page.clock.run_for(BEAT)
            seen.append(iteration.input_value())
        assert seen == [str(r) for r in range(1, rounds + 1)]
        assert button.inner_text() == "Play"
        page.clock.run_for(3 * BEAT)
        assert iteration.input_value() == str(rounds)


def test_pause_holds_the_iteration_and_play_goes_on_from_it(screens):
    screens.page.clock.install()
    page = screens.go(f"screen=routing&index={INDEX}&rounds=5&iteration=2")
    page.wait_for_selector("#coefficients")
    button, iteration = page.locator("button.play"), page.locator("#iteration")
    button.click()
    page.clock.run_for(BEAT)
    button.click()
    page.clock.run_for(3 * BEAT)
    assert (button.inner_text(), iteration.input_value()) == ("Play", "3")
    button.click()
    page.clock.run_for(BEAT)
    page.keyboard.press("]")  # another picture is routed from where the play is
    page.clock.run_for(BEAT)
    assert (button.inner_text(), iteration.input_value()) == ("Play", "5")


def test_the_server_traces_the_same(studio_address, trace):
    body = save({"image": sample_digits("test").images[INDEX].float() / 255})
    request = urllib.request.Request(
        f"{studio_address}api/models/demo/trace?iterations=5", body, {"Content-Type": "application/x-torchcaps-tensors"}
    )
    with urllib.request.urlopen(request) as answer:
        coefficients = load(answer.read())["coefficients"]
    torch.testing.assert_close(coefficients, trace.coefficients[:, 0], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("group", "count"), [("By type", 8), ("By position", 36)])
def test_groups_share_the_whole(screens, group, count):
    page = screens.go("screen=routing")
    page.get_by_text(group, exact=True).click()
    page.wait_for_selector("#coefficients")
    rows = screens.table("#coefficients")
    assert len(rows) == count
    for row in rows:
        assert math.fsum(map(float, row[1:])) == pytest.approx(1, abs=1e-4)


def test_the_whole_graph_is_seen_on_a_projector(open_screens, studio_address):
    page = open_screens(studio_address, 1920, 1080).go("screen=routing")
    page.wait_for_selector("#coefficients")
    graph = page.get_by_role("img", name="Links from lower capsules").bounding_box()
    assert graph["y"] + graph["height"] < 1080


def test_by_hand_the_shares_follow_the_agreement(screens):
    page = screens.go("screen=routing&byHand=1")
    for _ in range(12):
        page.keyboard.press("n")
    rows = page.eval_on_selector_all(
        "#hand-table tbody tr", "rows => rows.map(row => [...row.cells].map(c => c.textContent))"
    )
    assert all(float(row[3]) > 0.6 for row in rows[:3])
    assert all(float(row[4]) > 0.6 for row in rows[3:])
    tip = page.get_by_label("Vote of child 3 for A")
    tip.focus()
    for _ in range(40):
        page.keyboard.press("ArrowLeft")
    shown = page.locator("#hand-table tbody tr").nth(2).locator("td").nth(2).inner_text()
    assert float(shown) < float(rows[2][3])


def test_a_class_may_be_named_as_a_column_is(screens):
    def rename(route):
        models = route.fetch().json()
        for model in models:
            model["classes"][3] = "i"
        route.fulfill(json=models)

    screens.page.route("**/api/models", rename)
    page = screens.go("screen=routing&group=top")
    rows = screens.table("#coefficients")
    names = page.locator("#coefficients thead th").all_inner_texts()
    assert names.count("i") == 1
    assert all(len(row) == len(names) for row in rows)
