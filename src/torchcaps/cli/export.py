"""``torchcaps export``: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from torchcaps.cli.shared import ModelPath, say

if TYPE_CHECKING:
    from torchcaps.models import Model

__all__ = ["register"]

FORMATS = ("onnx", "safetensors")
PARTS = ("encoder", "decoder")


def register(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    model: ModelPath,
    file_format: Annotated[str, typer.Option("--format", help="onnx, or safetensors with its config.json.")] = "onnx",
    out: Annotated[Path | None, typer.Option("--out", help="The ONNX file, or the folder for safetensors.")] = None,
    part: Annotated[
        str, typer.Option("--part", help="Of ONNX: encoder (pictures to capsules) or decoder (capsules to pictures).")
    ] = "encoder",
) -> None:
    """Write a model as ONNX, for any batch size and with the routing inside, or as safetensors without checkpoints.

    **Examples**

        torchcaps export runs/demo-seed0 --format onnx --out model.onnx

        torchcaps export runs/demo-seed0 --format onnx --part decoder --out decoder.onnx

        torchcaps export runs/demo-seed0 --format safetensors --out my-model
    """
    from torchcaps.eval import load_model, open_run
    from torchcaps.eval.output import disk_errors_explained
    from torchcaps.train.packing import copy_origin

    if file_format not in FORMATS:
        raise typer.BadParameter(f"choose from {', '.join(FORMATS)}, not {file_format!r}", param_hint="--format")
    if part not in PARTS:
        raise typer.BadParameter(f"choose from {', '.join(PARTS)}, not {part!r}", param_hint="--part")
    run = open_run(model)
    network = load_model(run)
    if file_format == "safetensors":
        folder = out or Path("model")
        with disk_errors_explained(folder):
            network.save_pretrained(folder)
            copy_origin(run, folder)
        say(f"wrote {folder}/config.json and {folder}/model.safetensors; load with torchcaps.from_pretrained")
        return
    file = out or Path("model.onnx")
    _export_onnx(network, file, part)
    say(f"wrote {file} ({file.stat().st_size / 1e6:.1f} MB)")


def _export_onnx(network: Model, file: Path, part: str) -> None:
    from torchcaps.errors import TorchcapsError
    from torchcaps.eval.output import disk_errors_explained
    from torchcaps.models import export_onnx

    if file.is_dir():
        raise TorchcapsError(f"{file} is a folder; name a file in it with --out")
    with disk_errors_explained(file):
        export_onnx(network, file, part)
