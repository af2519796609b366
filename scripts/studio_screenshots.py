"""Take the studio's pictures for the manual: every screen, light and dark, on a desk and on a phone.

    python scripts/studio_screenshots.py [MODEL …]

Needs chromium, playwright and pillow. Without a model, those that ``torchcaps studio`` starts with.
"""

from __future__ import annotations

import base64
import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.studio_page import FLAGS  # noqa: E402
from benchmarks.studio_process import running_studio  # noqa: E402

FOLDER = ROOT / "docs" / "images" / "studio"
SIZES = {"desk": (1280, 800), "phone": (390, 844)}
SEVEN = [38, 30, 70, 26, 104, 28, 92, 58, 78, 90, 68, 120]  # a stroke: x, y, x, y, … of 140
STROKES = base64.urlsafe_b64encode(bytes([*SEVEN, 255])).decode().rstrip("=")
STATES = {
    "look": f"input=draw&strokes={STROKES}",
    "dimensions": "screen=dimensions&moves=0,0,0,0.2,-0.15",
    "routing": "screen=routing",
    "by-hand": "screen=routing&byHand=1&handStep=11",
    "overlap": "model=capsnet-multimnist&screen=overlap&input=overlay",
    "affine": "screen=affine&at=24",
    "clothes": "model=capsnet-fashion&screen=dimensions&index=3&moves=0,0,0.2,0.25",
    "guide": "screen=routing&byHand=1&handStep=1&card=5",
}


def smaller(picture: bytes) -> Image.Image:
    """256 colours are enough for a page that has few, and a quarter of the bytes."""
    return Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with running_studio(sys.argv[1:]) as studio, sync_playwright() as playwright:
        address = studio.address
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for size, (width, height) in SIZES.items():
            for theme in ("light", "dark"):
                context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
                page = context.new_page()
                for name, state in STATES.items():
                    page.goto("about:blank")
                    page.goto(f"{address}#{state}")
                    page.wait_for_selector("#screen h2")
                    page.wait_for_timeout(1500)
                    path = FOLDER / f"{name}-{size}-{theme}.png"
                    smaller(page.screenshot()).save(path, optimize=True)
                    print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB")
                context.close()
        browser.close()


if __name__ == "__main__":
    main()
