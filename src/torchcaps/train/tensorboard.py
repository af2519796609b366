"""TensorBoard events: curves, reconstructions, what each dimension means, where the votes go, the graph."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
from einops import rearrange, repeat
from torch import Tensor, nn

from torchcaps.errors import TorchcapsError
from torchcaps.models import Model
from torchcaps.models.mode import evaluation_mode
from torchcaps.train.feed import Example
from torchcaps.train.objective import has_decoder
from torchcaps.train.recipe import LogSection

__all__ = ["TensorBoardLog", "open_tensorboard"]

TWEAKS = torch.linspace(-0.25, 0.25, 11)  # Fig. 4 of the paper
SCALARS = ("loss", "margin", "reconstruction", "error", "lr", "images_per_second")


def open_tensorboard(section: LogSection, folder: Path, purge_step: int) -> TensorBoardLog | None:
    """A log where TensorBoard is installed and wanted; nothing, or an error that says how to get it, where not."""
    if section.tensorboard == "off":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its own dependencies
            from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        if section.tensorboard == "auto":
            return None
        raise TorchcapsError(
            "log.tensorboard is 'on', but TensorBoard is not installed; install it with: pip install "
            "'torchcaps[tensorboard]', or set log.tensorboard=off"
        ) from error
    return TensorBoardLog(SummaryWriter(str(folder), purge_step=purge_step or None))


class TensorBoardLog:
    """A sink of records that can also show pictures of the model."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, record: dict[str, Any]) -> None:
        if record["kind"] not in ("train", "validation"):
            return
        for name in SCALARS:
            if name in record:
                self._writer.add_scalar(f"{record['kind']}/{name}", record[name], record["step"])
        self._writer.flush()

    @torch.no_grad()
    def show(self, model: Model, example: Example, step: int) -> None:
        """Pictures and histograms of a few *training* examples."""
        with evaluation_mode(model):
            self._writer.add_images("pictures/input", example.images[:8].clamp(0, 1), step)
            if has_decoder(model):
                capsules: Tensor = model(example.images).capsules
                self._writer.add_images("pictures/reconstruction", reconstructions(model, capsules, example), step)
                grid = dimension_grid(model, capsules[:1], first_class(example.labels[:1]))
                self._writer.add_image("pictures/dimensions", grid, step)
            if hasattr(model, "classes"):
                trace = model(example.images, return_trace=True).trace
                entropy = trace.entropy().mean(dim=1)
                for iteration, coefficients in enumerate(trace.coefficients):
                    self._writer.add_histogram(f"coupling/iteration-{iteration + 1}", coefficients.flatten(), step)
                    self._writer.add_scalar(f"coupling/entropy-{iteration + 1}", float(entropy[iteration]), step)
        self._writer.flush()

    def show_graph(self, model: Model, images: Tensor) -> None:
        """The model as TensorBoard's graph; left out where it cannot be traced."""
        try:
            with evaluation_mode(model), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the tracer warns about checks of shapes
                # A second trace to compare with would number its nodes otherwise, and fail for that.
                traced = torch.jit.trace(_Network(model), images[:1], check_trace=False)
                self._writer.add_graph(traced, images[:1])
        except Exception as error:  # a network of someone's own may do what no tracer follows
            first_line = str(error).strip().partition("\n")[0]
            warnings.warn(f"TensorBoard shows no graph of this model: {first_line}", stacklevel=2)

    def close(self) -> None:
        self._writer.close()


class _Network(nn.Module):
    """The tracer wants tensors, models return dataclasses."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.model(images).scores
        return scores


def first_class(labels: Tensor) -> Tensor:
    """The first class of each picture, ``[B]``, of labels ``[B]``, pairs ``[B, 2]`` or bool ``[B, J]``."""
    if labels.dtype == torch.bool:
        return labels.int().argmax(dim=1)  # class 0 where there is none
    return labels if labels.ndim == 1 else labels[:, 0]


def reconstructions(model: Model, capsules: Tensor, example: Example) -> Tensor:
    """Up to 8 pictures to draw above what the true class's capsule draws, ``[8, C, 2H, W]``."""
    labels, targets = example.labels, example.targets
    if labels.ndim == 2 and labels.dtype != torch.bool:
        labels, targets = labels[:, 0], targets[:, 0]
    drawn: Tensor = model.reconstruct(capsules, labels)  # type: ignore[operator]
    return torch.cat([targets[:8].clamp(0, 1), drawn[:8].float()], dim=2)


def dimension_grid(model: Model, capsules: Tensor, classes: Tensor) -> Tensor:
    """Fig. 4: a row a dimension of one capsule, moved by −0.25 … 0.25; ``[C, D·H, 11·W]``."""
    D = capsules.shape[2]
    moved = repeat(capsules, "1 j d -> (m t) j d", m=D, t=len(TWEAKS)).clone()
    steps = torch.einsum("t, m d -> m t d", TWEAKS.to(capsules), torch.eye(D).to(capsules))
    moved += rearrange(steps, "m t d -> (m t) 1 d")
    drawn: Tensor = model.reconstruct(moved, classes.expand(len(moved)))  # type: ignore[operator]
    return rearrange(drawn.float(), "(m t) c h w -> c (m h) (t w)", m=D)
