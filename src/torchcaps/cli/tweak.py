"""``torchcaps tweak``: what each dimension of a class capsule stands for (Fig. 4 of the paper)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from torchcaps.cli.shared import DataDir, DataName, ModelPath, PngFile, read_class, say, warn

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command("tweak")(tweak)


def tweak(
    model: ModelPath,
    class_name: Annotated[str, typer.Option("--class", metavar="NAME", help="The class, by name or number.")],
    out: PngFile = Path("grid.png"),
    picture: Annotated[
        Path | None, typer.Option("--picture", help="A picture of that class; else an example of --data.")
    ] = None,
    data: DataName = None,
    data_dir: DataDir = None,
    invert: Annotated[str, typer.Option("--invert", help="auto, yes or no, for --picture.")] = "auto",
) -> None:
    """Move one dimension of a class capsule at a time, from −0.25 to 0.25 in steps of 0.05, and draw each.

    The vector is that of the first test example of the class which the model names right, or of your own picture.

    **Examples**

        torchcaps tweak runs/demo-seed0 --class 5 --out grid.png

        torchcaps tweak runs/demo-seed0 --class 7 --picture pictures/seven.png --out seven.png
    """
    import torch

    from torchcaps.errors import TorchcapsError
    from torchcaps.eval import choose_examples, dimension_grid, figures, load_model, open_run
    from torchcaps.eval.drawings import drawing_model, predict_classes
    from torchcaps.eval.examples import check_fit
    from torchcaps.eval.output import write_file
    from torchcaps.eval.pictures import class_names, read_pictures

    run = open_run(model)
    network = drawing_model(load_model(run))
    if picture is not None:
        classes = class_names(run, network)
        number = read_class(class_name, classes)
        image = read_pictures([picture], run, network, invert).images[0]
        if int(predict_classes(network, image[None])) != number:
            warn(
                f"the longest capsule of {picture} is not that of class {classes[number]}, which is drawn all the same"
            )
    else:
        examples = choose_examples(run, network, data, "test", data_dir)
        check_fit(network, examples)
        for remark in examples.remarks:
            warn(remark)
        classes = examples.classes
        number = read_class(class_name, classes)
        candidates = examples.images(examples.of_class(number)[:100])
        if not len(candidates):
            raise TorchcapsError(f"{examples.name} has no example of class {classes[number]}; give one with --picture")
        right = (predict_classes(network, candidates) == number).nonzero()[:, 0]
        image = candidates[int(right[0]) if len(right) else 0]
    with torch.no_grad():
        grid = dimension_grid(network, image, number)
    write_file(out, figures.to_png(figures.dimension_figure(grid, classes[number])))
    say(f"wrote {out}: {grid.shape[0]} dimensions × {grid.shape[1]} steps")
