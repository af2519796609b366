"""``torchcaps reconstruct``: pictures, what the capsules make of them, and the difference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import DataDir, DataName, ModelPath, PngFile, say, warn

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("reconstruct")(reconstruct)


def reconstruct(
    model: ModelPath,
    pictures: Annotated[
        list[Path] | None, typer.Argument(metavar="PICTURE", help="Pictures or folders; else examples of --data.")
    ] = None,
    out: PngFile = Path("reconstructions.png"),
    count: Annotated[int, typer.Option("--count", min=1, max=100, help="How many pictures at most.")] = 12,
    data: DataName = None,
    data_dir: DataDir = None,
    invert: Annotated[str, typer.Option("--invert", help="auto, yes or no: swap dark and bright.")] = "auto",
) -> None:
    """Draw pictures again from their longest capsule: input, reconstruction and difference in three rows.

    A model of pairs draws from its two longest capsules, one over the other; one of pictures that show any number of
    classes from all that are longer than 0.5. Examples of --data come from each class in
    turn. In the difference, vermilion is drawn too bright and blue too dark.

    **Examples**

        torchcaps reconstruct runs/demo-seed0 --out reconstructions.png

        torchcaps reconstruct runs/demo-seed0 pictures/five.png pictures/seven.png --out drawn.png
    """
    from torchcaps.eval import choose_examples, figures, load_model, open_run
    from torchcaps.eval.drawings import draw_named, draw_present, drawing_model
    from torchcaps.eval.examples import check_fit
    from torchcaps.eval.output import write_file
    from torchcaps.eval.pictures import class_names, read_pictures, things_in_a_picture

    run = open_run(model)
    network = drawing_model(load_model(run))
    things, any_number = things_in_a_picture(run), run.any_number_of_classes
    if pictures:
        read = read_pictures(pictures, run, network, invert)
        for line in read.skipped:
            warn(f"skipped {line}")
        images, classes = read.images[:count], class_names(run, network)
    else:
        examples = choose_examples(run, network, data, "test", data_dir)
        check_fit(network, examples)
        for remark in examples.remarks:
            warn(remark)
        classes = examples.classes
        images = examples.images(examples.classes_in_turn(count))
        things = things if examples.pairs is None else 2
        any_number = examples.any_number_of_classes
    if any_number:
        present, drawn = draw_present(network, images)
        named = [row.nonzero()[:, 0].tolist() for row in present]
    else:
        longest, drawn = draw_named(network, images, things)
        named = longest.tolist()
    names = [", ".join(classes[j] for j in row) or "none" for row in named]
    title = f"columns: the {'class' if things == 1 and not any_number else 'classes'} that the model names"
    drawing = figures.reconstruction_figure(images, drawn, names, title=title)
    write_file(out, figures.to_png(drawing))
    say(f"wrote {out}")
