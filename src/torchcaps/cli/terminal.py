"""Small pictures in a terminal."""

from __future__ import annotations

from rich.text import Text
from torch import Tensor

__all__ = ["bar", "picture"]


SHADES = " .:-=+*#%@"


def picture(image: Tensor, colours: bool = True) -> Text:
    """A grey picture ``[1, H, W]`` in [0, 1]: two rows of pixels in a line of half blocks, or shades of letters."""
    if not colours:
        lines = (image[0, ::2].clamp(0, 1) * (len(SHADES) - 1)).round().int().tolist()
        return Text("\n".join("".join(SHADES[shade] for shade in line) for line in lines))
    rows = (image[0].clamp(0, 1) * 255).round().int().tolist()
    if len(rows) % 2:
        rows.append([0] * len(rows[0]))
    text = Text()
    for upper, lower in zip(rows[::2], rows[1::2], strict=True):
        for top, bottom in zip(upper, lower, strict=True):
            text.append("▀", style=f"rgb({top},{top},{top}) on rgb({bottom},{bottom},{bottom})")
        text.append("\n")
    return text


def bar(share: float, width: int = 20) -> str:
    """A bar that is ``share`` of ``width`` long."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]
