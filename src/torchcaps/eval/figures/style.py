"""One look for all figures, and two ways out: PNG for paper, SVG that follows the light or dark page around it.

Colours are those of Okabe and Ito, told apart by colour-blind eyes. In the SVG each becomes a CSS variable, and the
ink becomes the colour of the page's text, so that one figure is readable on white and on black.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, ParamSpec

from torchcaps.errors import TorchcapsError

__all__ = [
    "BLUE",
    "GREEN",
    "INK",
    "LETTER_INCHES",
    "MUTED",
    "ORANGE",
    "SLANT",
    "VERMILION",
    "new_figure",
    "short",
    "short_names",
    "styled",
    "to_png",
    "to_svg",
]

Arguments = ParamSpec("Arguments")
BACKEND = "MPLBACKEND"
LETTER_INCHES = 0.08  # of a letter of 9 points, more than the mean
SLANT = 0.71  # share of a name's length that it is high, or wide, at 45°

BLUE, VERMILION, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
INK, MUTED = "#1f2328", "#8c959f"
CSS_COLOURS = {
    BLUE: "var(--blue, #0072b2)",
    VERMILION: "var(--vermilion, #d55e00)",
    GREEN: "var(--green, #009e73)",
    ORANGE: "var(--orange, #e69f00)",
    INK: "currentColor",
    MUTED: "var(--muted, #8c959f)",
}
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "text.parse_math": False,  # a class may be named $5 or $10
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": MUTED,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
}


def matplotlib() -> Any:
    """The library, or a word on how to get it.

    Figures need no backend. The environment may name one that is not here, as Jupyter's is not in a program that a
    notebook starts, and the library cannot be imported then; so the name is set afterwards, where it is one.
    """
    if (imported := sys.modules.get("matplotlib")) is not None:
        return imported
    backend = os.environ.pop(BACKEND, "")
    try:
        library = importlib.import_module("matplotlib")
    except ImportError as error:
        raise TorchcapsError('figures need matplotlib; install it with: pip install "torchcaps[figures]"') from error
    finally:
        if backend:
            os.environ[BACKEND] = backend
    if backend:
        with contextlib.suppress(ValueError):
            library.rcParams["backend"] = backend
    return library


def new_figure(width: float, height: float, columns: int = 1) -> tuple[Any, Any]:
    """A figure of so many inches and its axes; nothing global is touched, so no display is needed."""
    matplotlib()
    figure = importlib.import_module("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns)


def short(name: str, most: int) -> str:
    """A name with the middle left out where it has more than so many letters: both ends tell names apart."""
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[len(name) - tail :]}"


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Every name :func:`short`; where different ones would look alike, without what all begin and end with."""
    cut = [short(name, most) for name in names]
    if len(set(cut)) == len(set(names)):
        return cut
    start = _common_start(names)
    end = _common_start([name[start:][::-1] for name in names])
    return [short(f"…{name[start : len(name) - end]}…", most) for name in names]


def _common_start(names: Sequence[str]) -> int:
    return next((place for place, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), 0)


def styled(make_figure: Callable[Arguments, Any]) -> Callable[Arguments, Any]:
    """Draw a figure in the house's style, without changing matplotlib's settings for anyone else."""

    @functools.wraps(make_figure)
    def make(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Any:
        with matplotlib().rc_context(STYLE):
            return make_figure(*arguments, **keywords)

    return make


def to_png(figure: Any, dots_per_inch: int = 160) -> bytes:
    """PNG on white."""
    buffer = io.BytesIO()
    # Without the note on the software the same figure gives the same bytes.
    _save(figure, buffer, format="png", dpi=dots_per_inch, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()


def to_svg(figure: Any, name: str, description: str) -> str:
    """An ``<svg>`` element to stand inside a page; ``name`` makes its inner names unique there."""
    buffer = io.StringIO()
    with matplotlib().rc_context({"svg.hashsalt": name}):
        _save(figure, buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="|url\()#', rf"\1#{name}-", text)
    for colour, variable in CSS_COLOURS.items():
        text = text.replace(colour, variable)
    text = re.sub(r"'DejaVu Sans'(, sans-serif)*|sans-serif", "inherit", text)
    width = re.search(r'viewBox="0 0 ([\d.]+)', text)
    assert width is not None
    text = re.sub(
        r'<svg([^>]*?) width="[^"]*"', rf'<svg\1 style="max-width:{float(width[1]) * 4 / 3:.0f}px"', text, count=1
    )
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    label = escape(description, quote=True)
    return text.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def _save(figure: Any, buffer: io.IOBase, **options: Any) -> None:
    """Letters that the font lacks are boxes in a PNG, and come from the page's font in an SVG: nothing to warn of."""
    with matplotlib().rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font", UserWarning)
        figure.savefig(buffer, **options)
