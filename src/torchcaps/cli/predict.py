"""``torchcaps predict``: the class of pictures, and the length of every capsule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import ModelPath, console, print_table, say, warn

if TYPE_CHECKING:
    from torch import Tensor

    from torchcaps.eval.pictures import ReadPictures
    from torchcaps.eval.runs import Run
    from torchcaps.models import Model

__all__ = ["register"]

PICTURE_WIDTH = 16  # room for the name of a picture
FEW = 5  # classes that are named where not all fit


def register(app: typer.Typer) -> None:
    app.command("predict")(predict)


def predict(
    model: ModelPath,
    pictures: Annotated[list[Path], typer.Argument(metavar="PICTURE", help="Picture files, or folders of them.")],
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="Show the longest K capsules only; JSON always has all.")
    ] = None,
    invert: Annotated[
        str,
        typer.Option(
            "--invert", help="auto, yes or no: swap dark and bright. auto: ink on paper for models of digits."
        ),
    ] = "auto",
    reconstruct: Annotated[
        Path | None,
        typer.Option(
            "--reconstruct", metavar="DIR", help="Write what the longest capsule draws, as PNG; a pair's side by side."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Name the class of pictures, with the length of every capsule: how sure the model is that the class is there.

    Pictures of any size and kind are brought to the model's form as `folder:` does: scaled to fit inside, the border
    repeated outwards. For a model of digits, the digit is cut out of a photograph and centred as MNIST was made.

    "no class" means that no capsule is longer than 0.5, or that there is no ink. The longest one stands behind it: a
    model of one's own that was trained for a short time has short capsules, and its guess may still be right.

    **Examples**

        torchcaps predict runs/demo-seed0 pictures/five.png

        torchcaps predict runs/demo-seed0 pictures --top 3

        torchcaps predict runs/demo-seed0 pictures --json --invert no --reconstruct drawn
    """
    import json

    import torch

    from torchcaps.eval import load_model, open_run
    from torchcaps.eval.metrics import PRESENCE_THRESHOLD
    from torchcaps.eval.pictures import class_names, named_classes, read_pictures

    run = open_run(model)
    network = load_model(run)
    names = class_names(run, network)
    read = read_pictures(pictures, run, network, invert)
    for line in read.skipped:
        warn(f"skipped {line}")
    with torch.no_grad():
        scores = torch.cat([network(part).scores for part in read.images.split(256)])
    named = named_classes(run, network, scores, read.empty)
    drawn = [None] * len(read.paths) if reconstruct is None else _draw(run, network, read, scores, reconstruct)
    if as_json:
        records = [
            {
                "picture": str(path),
                "classes": [names[j] for j in found],
                "class_numbers": found,
                "lengths": {name: round(float(value), 6) for name, value in zip(names, row, strict=True)},
                "inverted": inverted,
                "reconstruction": None if drawing is None else str(drawing),
            }
            for path, row, found, inverted, drawing in zip(read.paths, scores, named, read.inverted, drawn, strict=True)
        ]
        say(json.dumps({"model": run.title, "predictions": records, "skipped": list(read.skipped)}, indent=2))
        return
    _print(read, scores, names, top, named)
    if reconstruct is not None:
        say(f"\nwrote {len(drawn)} picture{'s' * (len(drawn) > 1)} to {reconstruct}")
    if not all(named) and not run.any_number_of_classes:
        warn(
            f"in {named.count([])} of {len(named)} pictures no class is there: no capsule is longer than "
            f"{PRESENCE_THRESHOLD}, or no ink was found"
        )
    if any(read.inverted):
        warn(
            f"{sum(read.inverted)} of {len(read.paths)} pictures were inverted, being dark on bright; "
            "--invert no leaves them as they are"
        )


def _print(read: ReadPictures, scores: Tensor, names: tuple[str, ...], top: int | None, named: list[list[int]]) -> None:
    from rich.table import Table
    from rich.text import Text

    every = _fit(names) and (top is None or top >= len(names))
    unique = len({path.name for path in read.paths}) == len(read.paths)  # short names leave room for the lengths
    table = Table(box=None, pad_edge=False)
    table.add_column("picture", overflow="fold")
    table.add_column("class", no_wrap=True)
    for name in names if every else ():
        table.add_column(Text(name), justify="right", no_wrap=True)
    if not every:
        table.add_column("longest", overflow="fold")
    for path, row, found, empty in zip(read.paths, scores, named, read.empty, strict=True):
        order = row.argsort(descending=True).tolist()
        nothing = "no class" if empty else f"no class ({names[order[0]]}?)"
        longest = ", ".join(f"{names[j]} {float(row[j]):.2f}" for j in order[: top or FEW])
        table.add_row(
            Text(path.name if unique else str(path)),
            Text(" and ".join(names[j] for j in found) or nothing, "bold"),
            *([f"{value:.2f}" for value in row.tolist()] if every else [Text(longest)]),
        )
    print_table(table)


def _fit(names: tuple[str, ...]) -> bool:
    """Whether a column for each class leaves room for the picture and its class."""
    from rich.cells import cell_len  # letters of some scripts are two columns wide

    widths = [cell_len(name) for name in names]
    return sum(max(width, 4) + 2 for width in widths) + max(widths) + PICTURE_WIDTH <= console().width


def _draw(run: Run, network: Model, read: ReadPictures, scores: Tensor, folder: Path) -> list[Path | None]:
    """One PNG for each picture, under its own name; a number is added where two have the same.

    The classes of a pair are drawn each alone, as they were learned, side by side in the order of their names.
    """
    import io

    import torch

    from torchcaps.data.optional import pillow_image
    from torchcaps.eval.drawings import draw, draw_present, drawing_model
    from torchcaps.eval.output import write_file
    from torchcaps.eval.pictures import things_in_a_picture

    image, drawer = pillow_image(), drawing_model(network)
    if run.any_number_of_classes:
        _, drawings = draw_present(drawer, read.images)
    else:
        longest = scores.topk(things_in_a_picture(run), dim=1).indices
        drawings = torch.cat([draw(drawer, read.images, classes) for classes in longest.unbind(1)], dim=3)
    written: list[Path | None] = []
    taken: set[str] = set()
    for path, drawing in zip(read.paths, drawings, strict=True):
        name, number = f"{path.stem}.png", 1
        while name in taken:
            number += 1
            name = f"{path.stem}-{number}.png"
        taken.add(name)
        pixels = (drawing.clamp(0, 1) * 255).round().byte()
        plain = pixels[0].numpy() if len(pixels) == 1 else pixels.movedim(0, -1).contiguous().numpy()
        buffer = io.BytesIO()
        image.fromarray(plain).save(buffer, format="PNG")
        written.append(write_file(folder / name, buffer.getvalue(), option="--reconstruct"))
    return written
