"""Capsule networks as ONNX files, for any batch size."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from torchcaps.errors import TorchcapsError
from torchcaps.models.base import Model
from torchcaps.models.capsule_model import CapsuleModel
from torchcaps.models.mode import evaluation_mode

__all__ = ["export_onnx"]


class _Encoder(nn.Module):
    def __init__(self, model: CapsuleModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        out = self.model(images)
        return out.capsules, out.lengths


class _Decoder(nn.Module):
    def __init__(self, model: CapsuleModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, capsules: Tensor, classes: Tensor) -> Tensor:
        return self.model.reconstruct(capsules, classes)


def export_onnx(model: Model, path: str | Path, part: str = "encoder") -> Path:
    """Write one part of a capsule network as an ONNX file whose batch size is free.

    Args:
        part: ``"encoder"`` takes ``images`` ``[B, C, H, W]`` and gives ``capsules`` and ``lengths``, routing
            included; ``"decoder"`` takes ``capsules`` ``[B, J, D]`` and ``classes`` ``[B]`` and gives ``pictures``.

    Needs ``pip install "torchcaps[onnx]"``.
    """
    if part not in ("encoder", "decoder"):
        raise ValueError(f"unknown part {part!r}; choose 'encoder' or 'decoder'")
    if not isinstance(model, CapsuleModel):
        raise TorchcapsError(
            f"ONNX export knows capsule networks only, not {type(model).__name__}; write its weights with "
            "save_pretrained (--format safetensors)"
        )
    if part == "decoder" and model.decoder is None:
        raise TorchcapsError("this network was made without a decoder (decoder='none'); export its encoder")
    if importlib.util.find_spec("onnxscript") is None:
        raise TorchcapsError('ONNX export needs the package onnxscript; run: pip install "torchcaps[onnx]"')
    parameter = next(model.parameters())
    batch = torch.export.Dim.DYNAMIC
    images = torch.zeros(2, *model.image_shape, device=parameter.device, dtype=parameter.dtype)
    with evaluation_mode(model), torch.no_grad():
        if part == "encoder":
            wrapper, arguments = _Encoder(model), (images,)
            names, results = ["images"], ["capsules", "lengths"]
        else:
            capsules = model(images).capsules
            classes = torch.zeros(2, dtype=torch.int64, device=parameter.device)
            wrapper, arguments = _Decoder(model), (capsules, classes)  # type: ignore[assignment]
            names, results = ["capsules", "classes"], ["pictures"]
        return _write(wrapper, arguments, Path(path).expanduser(), names, results, batch)


def _write(
    wrapper: nn.Module,
    arguments: tuple[Tensor, ...],
    path: Path,
    names: list[str],
    results: list[str],
    batch: torch.export.Dim,
) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings(), _quiet("torch.onnx"):
        warnings.simplefilter("ignore")  # notes from the exporter about its own internals
        program = torch.onnx.export(
            wrapper,
            arguments,
            input_names=names,
            output_names=results,
            dynamic_shapes=tuple({0: batch} for _ in arguments),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    assert program is not None
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".exporting-") as scratch:
        program.save(Path(scratch) / path.name, external_data=False)
        os.replace(Path(scratch) / path.name, path)
    return path


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
