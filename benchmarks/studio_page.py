"""How fast the studio's page answers, measured in a real browser with a real server on this machine.

    python -m benchmarks.studio_page --csv records/studio/page.csv

Without ``--models`` the networks of ``torchcaps studio`` are used. Times run from the event (the time stamp that the
browser gave it) to the frame in which its result is on the screen.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import shutil
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.studio_process import running_studio

STATIC = Path(__file__).parents[1] / "src" / "torchcaps" / "studio" / "static"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SAMPLES = 200
LOADS = 10

# Times of every watched event until a frame shows that `changed()` gives something new.
WATCH = """([target, kind, shown]) => {
  const state = () => [...document.querySelectorAll(shown)].map(each =>
    each.tagName === 'CANVAS' ? each.dataset.drawn : each.dataset.length).join();
  window.times = [];
  for (const canvas of document.querySelectorAll('canvas' + shown)) {
    const context = canvas.getContext('2d');
    const put = context.putImageData.bind(context);
    context.putImageData = (...all) => { put(...all); canvas.dataset.drawn = performance.now(); };
  }
  document.querySelector(target).addEventListener(kind, event => {
    if (kind === 'pointermove' && event.buttons !== 1) return;  // not drawing
    const before = state();
    const look = () => {
      if (performance.now() - event.timeStamp > 2000) return;
      if (state() === before) return requestAnimationFrame(look);
      const channel = new MessageChannel();  // runs after the frame is painted
      channel.port1.onmessage = () => window.times.push(performance.now() - event.timeStamp);
      channel.port2.postMessage(0);
    };
    requestAnimationFrame(look);
  }, true);
}"""
FIRST_PAINT = """
window.firstPaint = new Promise(resolve => {
  const look = () => {
    if (!document.querySelector('[data-length]')) return requestAnimationFrame(look);
    const channel = new MessageChannel();
    channel.port1.onmessage = () => resolve(performance.now());
    channel.port2.postMessage(0);
  };
  requestAnimationFrame(look);
});
"""


@dataclass(frozen=True)
class Row:
    """One measured thing; a time in milliseconds, a size in kB."""

    what: str
    median: float
    p95: float
    samples: int
    unit: str
    target: float

    @property
    def met(self) -> bool:
        return self.p95 < self.target


def percentile(times: list[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, round(share * (len(times) - 1)))]


def row(what: str, times: list[float], target: float) -> Row:
    if not times:
        raise SystemExit(f"{what}: nothing was measured; does the studio answer?")
    return Row(what, statistics.median(times), percentile(times, 0.95), len(times), "ms", target)


def slider_to_picture(browser: Any, address: str) -> list[float]:
    """Drag a slider of the dimensions to and fro, with its grid of 176 pictures being drawn meanwhile."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{address}#screen=dimensions")
    page.wait_for_selector("canvas[data-done=true]")
    page.evaluate(WATCH, ["[data-dimension='4']", "input", "#moved"])
    box = page.locator("[data-dimension='4']").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] / 2, middle)
    page.mouse.down()
    for step in range(SAMPLES):
        share = abs((step % 40) / 20 - 1)
        page.mouse.move(box["x"] + 8 + share * (box["width"] - 16), middle)
        page.wait_for_timeout(25)
    page.mouse.up()
    page.wait_for_timeout(200)
    times = page.evaluate("window.times")
    page.close()
    return times


def stroke_to_bars(browser: Any, address: str) -> list[float]:
    """Draw arcs; each move of the pen until the bars have an answer to it."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{address}#input=draw")
    page.wait_for_selector("[data-length]")
    page.evaluate(WATCH, ["#pad", "pointermove", "[data-length]"])
    box = page.locator("#pad").bounding_box()
    centre = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for arc in range(SAMPLES // 25):
        radius = (0.15 + 0.03 * arc) * box["width"]
        for step in range(26):
            page.mouse.move(centre[0] + radius * math.cos(step / 5), centre[1] - radius * math.sin(step / 5))
            if step == 0:
                page.mouse.down()
            page.wait_for_timeout(60)
        page.mouse.up()
        page.get_by_role("button", name="Clear").click()
        page.wait_for_timeout(200)
    page.wait_for_timeout(500)
    times = page.evaluate("window.times")
    page.close()
    return times


def first_paint(browser: Any, address: str) -> list[float]:
    """From the navigation to bars on the screen, each time with an empty cache."""
    times = []
    for _ in range(LOADS):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.add_init_script(FIRST_PAINT)
        page.goto(address)
        times.append(page.evaluate("window.firstPaint"))
        context.close()
    return times


def bundle() -> Row:
    """Everything that the browser fetches of the page itself, as gzip would send it."""
    size = sum(len(gzip.compress(file.read_bytes(), 9, mtime=0)) for file in STATIC.rglob("*") if file.is_file()) / 1000
    return Row("bundle, gzip", size, size, 1, "kB", 300)


def measure(models: list[str]) -> list[Row]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("this benchmark needs the program chromium on the path")
    with running_studio(models) as studio, sync_playwright() as playwright:
        address = studio.address
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        first_paint(browser, address)  # the server's first answers are slower
        rows = [
            row("slider to picture", slider_to_picture(browser, address), 50),
            row("stroke to bars", stroke_to_bars(browser, address), 100),
            row("first meaningful paint", first_paint(browser, address), 1000),
        ]
        browser.close()
    return [*rows, bundle()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=[], help="as for torchcaps studio")
    parser.add_argument("--csv", type=Path, help="also write the rows to this file")
    arguments = parser.parse_args()
    rows = measure(arguments.models)
    print(f"{'':24}{'median':>10}{'p95':>10}{'target':>12}")
    for each in rows:
        target = f"< {each.target:g} {each.unit}"
        print(f"{each.what:24}{each.median:10.1f}{each.p95:10.1f}{target:>12}  {'met' if each.met else 'MISSED'}")
    if arguments.csv is not None:
        arguments.csv.parent.mkdir(parents=True, exist_ok=True)
        with arguments.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*asdict(rows[0]), "met"])
            writer.writeheader()
            rounded = [{**asdict(each), "median": round(each.median, 1), "p95": round(each.p95, 1)} for each in rows]
            writer.writerows({**each, "met": measured.met} for each, measured in zip(rounded, rows, strict=True))
    if not all(each.met for each in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
