"""One network that the studio shows, and what there is to know about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

import torchcaps
from torchcaps.data.augment.photometric import Standardize
from torchcaps.eval.picture_form import PictureForm
from torchcaps.eval.pictures import class_names, picture_form, things_in_a_picture
from torchcaps.eval.recipe_facts import recipe_facts
from torchcaps.eval.runs import Run, load_model, open_run
from torchcaps.models import CapsNet, CapsuleModel, Model
from torchcaps.nn import DynamicRouting, ReconstructionDecoder
from torchcaps.nn.routing.fused import fused_options
from torchcaps.ops.routing.options import RoutingOptions
from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.schemas import DecoderFacts, PrimaryFacts

__all__ = ["Network", "load_network", "open_named"]


@dataclass(frozen=True)
class Network:
    """A loaded model. ``path`` is what a person writes in Python to load the same."""

    path: str
    shipped: bool
    run: Run
    model: Model

    @cached_property
    def classes(self) -> tuple[str, ...]:
        return class_names(self.run, self.model)

    @property
    def has_capsules(self) -> bool:
        return isinstance(self.model, CapsuleModel)

    @property
    def capsule_model(self) -> CapsuleModel:
        """The model, if it has capsules; else a refusal."""
        if not isinstance(self.model, CapsuleModel):
            raise RefusalError(f"{self.model.architecture} has no capsules; ask for a capsule network", 404)
        return self.model

    @property
    def drawing(self) -> CapsuleModel:
        """The model, if it draws what its capsules hold; else a refusal."""
        if self.capsule_model.decoder is None:
            raise RefusalError("this network has no decoder, so there is nothing to draw with", 404)
        return self.capsule_model

    @property
    def routed(self) -> CapsNet:
        """The model, if one routing leads from one grid of lower capsules to the classes; else a refusal."""
        if not isinstance(self.capsule_model, CapsNet):
            raise RefusalError(
                f"{self.model.architecture} has no single grid of primary capsules below its classes, so its routing "
                "cannot be shown; ask for a network of the architecture capsnet",
                404,
            )
        return self.capsule_model

    @property
    def page_loop(self) -> RoutingOptions | None:
        """How the page's own loop gives what the network gives, from the votes; none where it cannot."""
        routing = self.model.classes.routing if isinstance(self.model, CapsNet) else None
        return fused_options(routing) if isinstance(routing, DynamicRouting) else None

    @property
    def runs_in_page(self) -> bool:
        """Whether a page without a server gives what the network gives, from any picture."""
        return self.page_loop is not None and self.standardize is None

    @cached_property
    def capsule_dim(self) -> int:
        """D of the class capsules; an answer to an empty picture shows it, whatever the network is made of."""
        with torch.inference_mode():
            return self.capsule_model(torch.zeros(1, *self.model.image_shape)).capsules.shape[2]

    @property
    def decoder(self) -> ReconstructionDecoder:
        """The fully connected decoder; a refusal for a network without one."""
        decoder = self.capsule_model.decoder
        if not isinstance(decoder, ReconstructionDecoder):
            raise RefusalError("this network has no fully connected decoder; POST capsules to …/decode instead", 404)
        return decoder

    @cached_property
    def multi(self) -> int:
        """How many things a picture shows; 0 where it may be any number."""
        return 0 if self.run.any_number_of_classes else things_in_a_picture(self.run)

    @cached_property
    def form(self) -> PictureForm:
        """How a picture of somebody's own is read."""
        return picture_form(self.run, self.model)

    @cached_property
    def standardize(self) -> Standardize | None:
        """What the recipe does to the pixels, also of a picture that is only looked at."""
        augment = recipe_facts(self.run).augment
        return None if augment is None else augment.standardize

    def primary_facts(self) -> PrimaryFacts | None:
        if not isinstance(self.model, CapsNet):
            return None
        rows, columns, types = self.model.primary_grid
        primary = self.model.primary
        return PrimaryFacts(rows=rows, columns=columns, types=types, dim=primary.dim, stride=primary.stride)

    def decoder_facts(self) -> DecoderFacts | None:
        decoder = self.model.decoder if isinstance(self.model, CapsuleModel) else None
        if decoder is None:
            return None
        if not isinstance(decoder, ReconstructionDecoder):
            return DecoderFacts(kind="convolutional", sizes=[])
        weights: list[Tensor] = [layer.weight for layer in decoder.layers]  # type: ignore[misc]
        return DecoderFacts(kind="fully-connected", sizes=[weights[0].shape[1], *(len(weight) for weight in weights)])

    def lower_capsules(self, images: Tensor) -> Tensor:
        """Primary capsules ``[B, I, P]`` of pictures ``[B, C, H, W]`` in 0…1."""
        return self.routed.lower_capsules(self.prepared(images))

    def prepared(self, images: Tensor) -> Tensor:
        """What the network is trained on, of pictures in 0…1."""
        return images if self.standardize is None else self.standardize.evaluate(images)

    def votes(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Votes ``[B, I, J, D]`` and lower capsules ``[B, I, P]``."""
        lower = self.lower_capsules(images)
        return self.routed.classes.votes(lower), lower


def open_named(path: str) -> tuple[Run, bool]:
    """What a name or a folder stands for, and whether it is one of the shipped weights."""
    return open_run(path), path in torchcaps.list_pretrained() and not Path(path).exists()


def load_network(path: str, run: Run, shipped: bool) -> Network:
    """Read the weights; every way in which they can be wrong is an error in words."""
    model = load_model(run)
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with torch.inference_mode():
        return Network(path, shipped, run, model.eval())
