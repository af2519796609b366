"""Small pieces of HTML: everything that comes from outside is escaped here and nowhere else."""

from __future__ import annotations

import base64
import importlib
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import torch
from torch import Tensor

from torchcaps.errors import TorchcapsError
from torchcaps.eval.figures.grids import displayable
from torchcaps.eval.figures.style import short

__all__ = ["details", "escape", "facts_table", "figure", "length_bars", "picture", "table"]

MOST_BARS = 12
FEWEST_LETTERS = 6  # of a shortened name
BARS_WIDTH, SLOT, LETTER = 120, 12, 4.6  # of the whole drawing, of a bar with its gap at least, of a letter below it


def figure(drawing: str, caption: str) -> str:
    """A drawing (finished markup) with its caption (plain text)."""
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, text_columns: int = 1) -> str:
    """A table of plain texts; the first columns are words, the others numbers and set to the right."""
    kinds = ["" if place < text_columns else " class=number" for place in range(len(head))]
    names = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for kind, name in zip(kinds, head, strict=True))
    lines = []
    for row in rows:
        first = f'<th scope="row">{escape(row[0])}</th>'
        cells = "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds[1:], row[1:], strict=True))
        lines.append(f"<tr>{first}{cells}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts_table(facts: Mapping[str, Any]) -> str:
    """Names and values as a list of terms; nested names are joined with a dot."""
    terms = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in _flat(facts))
    return f'<dl class="facts">{terms}</dl>'


def details(summary: str, body: str) -> str:
    """A part that is folded until asked for; on paper the page's style leaves it folded."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"


def picture(image: Tensor, description: str) -> str:
    """A picture ``[C, H, W]`` as an ``<img>`` that needs no other file."""
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError as error:
        raise TorchcapsError('the report needs Pillow; install it with: pip install "torchcaps[images]"') from error
    shown = displayable(image.unsqueeze(0))[0]
    colours = shown if shown.shape[0] == 3 else shown[:1].expand(3, -1, -1)
    pixels = (colours.clamp(0, 1) * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy()
    buffer = io.BytesIO()
    pillow.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img class="pixels" alt="{escape(description, quote=True)}" src="data:image/png;base64,{data}">'


def length_bars(scores: Tensor, classes: Sequence[str], truth: Tensor, named: Tensor) -> str:
    """A bar for each class as high as its capsule is long; true classes blue, others that were named vermilion.

    With many classes the longest ones, and the true ones, are shown. A name for which there is no room is shortened,
    or left out where only a few letters would be left; every bar says its name where a pointer rests on it.
    """
    J = len(classes)
    shown = list(range(J))
    if J > MOST_BARS:
        best = set(scores.topk(MOST_BARS - 1).indices.tolist()) | set(truth.nonzero()[:, 0].tolist())
        shown = sorted(best)
    bars = []
    slot = max(SLOT, BARS_WIDTH / len(shown))
    width, thick = slot * len(shown), min(16, slot * 2 / 3)
    room = int(slot / LETTER)
    for place, j in enumerate(shown):
        kind = "true" if truth[j] else "named" if named[j] else "other"
        height, middle = 40 * float(scores[j]), slot * (place + 0.5)
        bars.append(
            f'<rect class="{kind}" x="{middle - thick / 2:g}" y="{42 - height:.1f}" width="{thick:g}" '
            f'height="{height:.1f}"><title>{escape(classes[j])} {float(scores[j]):.2f}</title></rect>'
        )
        name = classes[j] if len(classes[j]) <= room else short(classes[j], room - 1)
        if name == classes[j] or room >= FEWEST_LETTERS:
            bars.append(f'<text x="{middle:g}" y="52">{escape(name)}</text>')
    spoken = ", ".join(f"{classes[j]} {float(scores[j]):.2f}" for j in shown)
    return (
        f'<svg class="bars" role="img" aria-label="Capsule lengths: {escape(spoken, quote=True)}" '
        f'viewBox="0 0 {width:g} 55"><line x1="0" y1="42" x2="{width:g}" y2="42"/>{"".join(bars)}</svg>'
    )


def _flat(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    for name, value in facts.items():
        if isinstance(value, Mapping):
            lines += _flat(value, f"{prefix}{name}.")
        elif value not in (None, "", [], ()):
            text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            lines.append((f"{prefix}{name}", text))
    return lines
