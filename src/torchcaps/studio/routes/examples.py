"""``/api/examples``: the test pictures, whole or filtered."""

from __future__ import annotations

import json
import random
from typing import Annotated

import torch
from fastapi import APIRouter, Path, Query

from torchcaps.studio.catalogue import Catalogue
from torchcaps.studio.example_sets import ExampleSet
from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.routes.shared import (
    StrictRoute,
    TensorResponse,
    WholeNumber,
    find_network,
    problems,
    tensor_answer,
)
from torchcaps.studio.schemas import ExampleFacts
from torchcaps.studio.workers import Workers

__all__ = ["example_metadata", "example_routes"]

Source = Annotated[str | None, Query(max_length=128, description="Name of a set; left out, that of the first model.")]
Split = Annotated[str, Query(pattern="^test$", description="Only test pictures are shown.")]
Label = Annotated[WholeNumber | None, Query(ge=0, le=100_000, description="Only examples of this class.")]
Mistakes = Annotated[str | None, Query(max_length=160, description="Only examples that this model gets wrong.")]
Random = Annotated[WholeNumber | None, Query(ge=1, le=1000, description="So many of them, in random order.")]
Position = Annotated[WholeNumber, Path(ge=0, le=10_000_000)]


def example_routes(catalogue: Catalogue, workers: Workers) -> APIRouter:
    """Routes about test pictures."""
    router = APIRouter(prefix="/examples", route_class=StrictRoute, tags=["examples"])
    generator = random.Random()

    async def filtered(examples: ExampleSet, label: int | None, model_id: str | None) -> tuple[list[int], int]:
        searched = len(examples)
        chosen = torch.arange(searched)
        if model_id is not None:
            await find_network(catalogue, workers, model_id)
            if catalogue.examples_of(model_id) is not examples:
                raise RefusalError(
                    f"these pictures are not those of {model_id}; ask with source={examples.id} of its own"
                )
            found = await workers.run_long(catalogue.survey, model_id)
            chosen, searched = found.mistakes, found.searched
        if label is not None:
            if label >= len(examples.classes):
                raise RefusalError(f"{examples.name} has the classes 0 to {len(examples.classes) - 1}")
            chosen = chosen[examples.truth(chosen)[:, label]] if len(chosen) else chosen
        return chosen.tolist(), searched

    @router.get("", response_model=ExampleFacts, responses=problems(400, 404, 422, 503))
    async def examples(
        source: Source = None,
        split: Split = "test",
        label: Label = None,
        only_mistakes_of: Mistakes = None,
        random: Random = None,
    ) -> ExampleFacts:
        """About a set of pictures; with a filter also the indices of those that pass."""
        if source is None and only_mistakes_of is not None:
            found = catalogue.examples_of(only_mistakes_of)
        else:
            found = catalogue.examples(source)
        indices: list[int] | None = None
        searched = len(found)
        if label is not None or only_mistakes_of is not None or random is not None:
            indices, searched = await filtered(found, label, only_mistakes_of)
            if random is not None:
                indices = generator.sample(indices, min(random, len(indices)))
        return ExampleFacts(
            source=found.id,
            name=found.name,
            split=split,
            count=len(found),
            classes=list(found.classes),
            image_shape=list(found.image_shape),
            sources=catalogue.sources(),
            indices=indices,
            files=None if indices is None else found.files(indices),
            searched=searched,
        )

    @router.get("/{index}", response_class=TensorResponse, responses=problems(404, 422))
    async def example(index: Position, source: Source = None) -> TensorResponse:
        """One picture, with its class in the metadata."""
        found = catalogue.examples(source)
        if index >= len(found):
            raise RefusalError(f"{found.name} has the examples 0 to {len(found) - 1}", 404)
        return tensor_answer({"image": found.pictures(torch.tensor([index]))[0]}, example_metadata(found, index))

    return router


def example_metadata(examples: ExampleSet, index: int) -> dict[str, str]:
    """``label`` and ``class`` of the first thing in the picture, ``labels`` of all as JSON, its ``file`` if known.

    ``things`` is how many a picture of the set shows, 0 where it may be any number.
    """
    labels = examples.labels(index)
    file = examples.examples.file(index)
    return ({} if file is None else {"file": file}) | {
        "index": str(index),
        "label": str(labels[0]) if labels else "",
        "class": examples.classes[labels[0]] if labels else "",
        "labels": json.dumps(labels),
        "things": str(examples.things),
    }
