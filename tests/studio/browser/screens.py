"""The page as a person meets it: what is shown, and what the mouse and the keys do."""

from __future__ import annotations

import contextlib
import math
from typing import Any
from urllib.parse import urlsplit

import torch
from torch import Tensor

__all__ = ["DIGIT_STROKES", "Screens", "numbers_in"]

CIRCLE = [(0.5 + 0.24 * math.sin(t / 12 * math.tau), 0.5 - 0.36 * math.cos(t / 12 * math.tau)) for t in range(13)]
# Strokes as shares of the drawing field.
DIGIT_STROKES = {
    "0": [CIRCLE],
    "1": [[(0.52, 0.12), (0.5, 0.5), (0.48, 0.88)]],
    "7": [[(0.25, 0.18), (0.5, 0.17), (0.75, 0.18), (0.62, 0.5), (0.48, 0.88)]],
}
READ_CANVAS = """selector => {
  const shown = document.querySelector(selector);
  const copy = new OffscreenCanvas(shown.width, shown.height).getContext('2d', { willReadFrequently: true });
  copy.drawImage(shown, 0, 0);
  return [...copy.getImageData(0, 0, shown.width, shown.height).data].filter((_, n) => n % 4 === 0);
}"""


def numbers_in(text: str) -> list[float]:
    """Every number in what a program printed."""
    words = "".join(letter if letter in "0123456789.-e" else " " for letter in text).split()
    found = []
    for word in words:
        with contextlib.suppress(ValueError):
            found.append(float(word))
    return found


class Screens:
    """One window."""

    def __init__(self, context: Any, address: str) -> None:
        self.context, self.address = context, address
        self.complaints: list[str] = []
        self.loads_may_fail = False  # the browser notes what a test breaks on purpose
        self.strangers: list[str] = []
        self.asked, self.answered = 0, 0
        self.page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)
        self.page.on("requestfinished", self._answered)
        self.page.on("requestfailed", self._answered)

    def _heard(self, message: Any) -> None:
        expected = self.loads_may_fail and message.text.startswith("Failed to load resource")
        if message.type in ("error", "warning") and not expected:
            self.complaints.append(message.text)

    def _asked(self, request: Any) -> None:
        self.asked += 1
        parts = urlsplit(request.url)
        if parts.scheme not in ("blob", "data", "about") and parts.netloc != urlsplit(self.address).netloc:
            self.strangers.append(request.url)

    def _answered(self, _request: Any) -> None:
        self.answered += 1

    def close(self) -> None:
        self.context.close()

    def go(self, state: str = "") -> Any:
        """Load the page afresh in this state and wait for the first answer."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#{state}")
        self.page.wait_for_selector("#screen h2")
        return self.page

    def settle(self, milliseconds: int = 400) -> None:
        """Until the page has waited for no answer for so long; by its own clock, which lags when the page does."""
        for _ in range(50):
            before = self.asked
            self.page.evaluate("time => new Promise((resolve) => setTimeout(resolve, time))", milliseconds)
            if self.asked == self.answered == before:
                return
        raise AssertionError(f"{self.asked - self.answered} answers are still waited for")

    def slow_down(self, part: str, milliseconds: int) -> None:
        """Answers to addresses with this part in them come late, as from a busy machine."""
        self.page.evaluate(
            """([part, milliseconds]) => {
              const fetched = window.fetch;
              window.fetch = async (path, options) => {
                const answer = await fetched(path, options);
                if (path.includes(part)) await new Promise((resolve) => setTimeout(resolve, milliseconds));
                return answer;
              };
            }""",
            [part, milliseconds],
        )

    def lengths(self) -> list[float]:
        shown = self.page.locator("[data-length]")
        return [float(shown.nth(j).get_attribute("data-length")) for j in range(shown.count())]

    def wait_for_class(self, name: str) -> None:
        """Until the longest bar is this class."""
        self.page.wait_for_function(
            """name => {
              const bars = [...document.querySelectorAll('[data-length]')];
              const best = bars.reduce((a, b) => (+a.dataset.length >= +b.dataset.length ? a : b), bars[0]);
              return best?.closest('button').querySelector('.name').textContent === name;
            }""",
            arg=name,
        )

    def grey(self, selector: str) -> Tensor:
        """The red channel of a canvas, ``[pixels]``."""
        return torch.tensor(self.page.evaluate(READ_CANVAS, selector), dtype=torch.uint8)

    def table(self, selector: str) -> list[list[str]]:
        """Rows of a table twin, opened first."""
        if not self.page.locator(f"{selector} table").count():
            self.page.locator(f"{selector} summary").click()
            self.page.wait_for_selector(f"{selector} tbody tr")
        return self.page.eval_on_selector_all(
            f"{selector} tbody tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
        )

    def tab_to(self, selector: str, most: int = 80) -> None:
        """Press Tab until the element has the focus, as someone without a mouse would."""
        for _ in range(most):
            if self.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{selector} cannot be reached with Tab")

    def draw(self, digit: str) -> None:
        """With the mouse, at about the speed of a hand."""
        box = self.page.locator("#pad").bounding_box()
        for stroke in DIGIT_STROKES[digit]:
            places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke]
            self.page.mouse.move(*places[0])
            self.page.mouse.down()
            for place in places[1:]:
                self.page.mouse.move(*place, steps=6)
            self.page.mouse.up()
