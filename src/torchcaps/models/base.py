"""What all models share: checked pictures, saving and loading without pickle, a summary before the first step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from huggingface_hub import PyTorchModelHubMixin
from torch import Tensor, nn

from torchcaps.errors import TorchcapsError
from torchcaps.models.summary import Summary, summarize
from torchcaps.nn import PrimaryCapsules
from torchcaps.ops.precision import autocast_dtype
from torchcaps.ranges import check_values

__all__ = ["Model"]


class Model(nn.Module, PyTorchModelHubMixin, library_name="torchcaps", tags=["capsule-network"]):
    """Base of every network here; a constructor begins with ``self.take_settings(locals())``."""

    architecture: ClassVar[str]  # set by the registry
    image_shape: tuple[int, int, int]
    num_classes: int
    settings: dict[str, Any]  # the arguments that build the same network again

    def take_settings(self, arguments: Mapping[str, Any]) -> None:
        """Check the constructor's arguments against their declared ranges; they build the same network again."""
        self.settings = {name: value for name, value in arguments.items() if name not in ("self", "__class__")}
        check_values(type(self).__init__, self.settings)
        channels, height, width = self.settings["image_shape"]
        self.image_shape, self.num_classes = (channels, height, width), self.settings["num_classes"]

    def check_images(self, images: Tensor) -> None:
        """Raise an error that helps when pictures do not fit the network."""
        C, H, W = self.image_shape
        if not isinstance(images, Tensor):
            raise TypeError(
                f"pictures must be a tensor [B, {C}, {H}, {W}], got {type(images).__name__}; torch.stack them"
            )
        if images.ndim != 4 or tuple(images.shape[1:]) != self.image_shape:
            raise ValueError(
                f"this network takes pictures [B, {C}, {H}, {W}], got {list(images.shape)}; resize them, "
                f"or create the model with the image_shape=(channels, height, width) of your pictures"
            )
        if not images.is_floating_point():
            raise TypeError(
                f"pictures must be floating point in [0, 1], got {images.dtype}; write images.float() / 255"
            )
        if torch.compiler.is_compiling():  # older compilers cannot trace the search for a weight
            return
        weight = next(self.parameters(), None)  # a replica for another device has none
        if weight is None:
            return
        if images.device != weight.device:
            raise ValueError(
                f"the pictures are on {images.device}, the network on {weight.device}; move one of them with .to"
            )
        cast = autocast_dtype(images.device.type) is not None and images.dtype != torch.float64
        if images.dtype != weight.dtype and not cast:
            raise TypeError(
                f"the pictures are {images.dtype}, the network {weight.dtype}; write images.to({weight.dtype})"
            )

    @classmethod
    def _load_as_pickle(cls, model: Any, model_file: str, map_location: str, strict: bool) -> Any:
        """What the hub library would do where a model has no safetensors; a pickle can run anything."""
        raise TorchcapsError(f"{model_file} is a pickle, which could run any program; ask for model.safetensors")

    def to(self, *arguments: Any, memory_format: torch.memory_format | None = None, **keywords: Any) -> Self:
        """As of every module; a memory format is for convolutions alone, since weights of capsules are no pictures."""
        super().to(*arguments, **keywords)
        if memory_format is not None:
            for layer in self.modules():
                if isinstance(layer, nn.Conv2d | PrimaryCapsules):
                    layer.weight.data = layer.weight.data.contiguous(memory_format=memory_format)
        return self

    def training_outputs(self, images: Tensor, classes: Tensor) -> tuple[Tensor, ...]:
        """Everything that a training loss is made from; ``classes`` are the true ones."""
        raise NotImplementedError

    def summary(self, batch_size: int = 128, show: bool = True) -> Summary:
        """Layers, shapes, parameters and the memory of a training step with Adam, found without running one."""
        summary = summarize(self, batch_size)
        if show:
            print(summary)
        return summary

    def save_pretrained(
        self,
        save_directory: str | Path,
        *,
        config: Any = None,
        repo_id: str | None = None,
        push_to_hub: bool = False,
        model_card_kwargs: dict[str, Any] | None = None,
        **keywords: Any,
    ) -> str | None:
        """Write ``config.json`` and ``model.safetensors``; a reader never sees half a file.

        A ``README.md`` that is there already stays. ``push_to_hub=True`` uploads them, too, to ``repo_id``; the
        keywords are those of huggingface_hub, whose ``config`` is always the network's own settings.
        """
        directory = Path(save_directory).expanduser()
        config = {"architecture": self.architecture, **self.settings}
        for name, value in config.items():
            if callable(value):
                raise ValueError(
                    f"{name}={value} is a function, which a file cannot hold; make it a class with a name "
                    "(torchcaps.register_routing), or save model.state_dict() with safetensors.torch.save_file and "
                    "build the model in code"
                )
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory, prefix=".saving-") as scratch:
            super().save_pretrained(scratch, config=config, model_card_kwargs=model_card_kwargs)
            for file in Path(scratch).iterdir():
                if file.name == "README.md" and (directory / file.name).exists():
                    continue  # somebody wrote a card that says more than the hub's
                file.chmod(0o644)  # safetensors writes for its owner alone
                os.replace(file, directory / file.name)
        if push_to_hub:
            repo_id = repo_id or directory.resolve().name
            return str(self.push_to_hub(repo_id, model_card_kwargs=model_card_kwargs, **keywords))
        return None
