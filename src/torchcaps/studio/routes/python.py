"""``/api/models/{id}/python``: what is shown, as a program."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field

from torchcaps.data.sample import SAMPLES
from torchcaps.studio.affine import Kind
from torchcaps.studio.catalogue import Catalogue
from torchcaps.studio.network import Network
from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.routes.shared import (
    TENSORS_IN,
    ModelId,
    StrictRoute,
    WholeNumber,
    find_network,
    one_image,
    problems,
)
from torchcaps.studio.snippets import (
    Program,
    SnippetKind,
    SnippetValues,
    embedded_picture,
    python_snippet,
    sample_picture,
)
from torchcaps.studio.workers import Workers

__all__ = ["SnippetQuery", "python_routes"]

Index = Annotated[WholeNumber, Field(ge=0, le=10_000_000)]


class SnippetQuery(BaseModel):
    """What the page shows: the screen, the picture and where its sliders stand."""

    model_config = ConfigDict(extra="forbid")

    kind: SnippetKind = "look"
    source: str | None = Field(None, max_length=128, description="Set of test pictures; left out, the model's own.")
    index: Index = 0
    capsule: WholeNumber = Field(0, ge=0, le=100_000)
    vector: str = Field("", max_length=20_000, description="Numbers of the sliders with commas between them.")
    iterations: WholeNumber = Field(3, ge=1, le=10)
    transform: Kind = "rotate"
    value: float = Field(0.0, ge=-1000, le=1000)

    def values(self, network: Network) -> SnippetValues:
        """As Python source, checked against the network."""
        vector = "[]"
        if self.kind == "dimensions":
            model, D = network.drawing, network.capsule_dim
            numbers = _numbers(self.vector)
            if self.capsule >= model.num_classes or len(numbers) != D:
                raise RefusalError(
                    f"dimensions needs capsule=0…{model.num_classes - 1} and vector= of {D} numbers, got capsule "
                    f"{self.capsule} and {len(numbers)} numbers"
                )
            vector = f"[{', '.join(f'{number:.7g}' for number in numbers)}]"
        return SnippetValues(
            capsule=str(self.capsule),
            vector=vector,
            iterations=str(self.iterations),
            transform=repr(self.transform),
            value=repr(self.value),
        )


def python_routes(catalogue: Catalogue, workers: Workers) -> APIRouter:
    """Routes that write programs."""
    router = APIRouter(prefix="/models/{model_id}/python", route_class=StrictRoute, tags=["python"])

    @router.get("", response_class=PlainTextResponse, responses=problems(400, 404, 422, 503))
    async def python(model_id: ModelId, query: Annotated[SnippetQuery, Query()]) -> str:
        """A program that gives what is shown of a test picture; runs as it is."""
        network = await find_network(catalogue, workers, model_id)
        return python_snippet(network, query.kind, _picture(catalogue, model_id, network, query), query.values(network))

    @router.post(
        "",
        response_class=PlainTextResponse,
        responses=problems(400, 404, 413, 415, 422, 503),
        openapi_extra=TENSORS_IN,
    )
    async def python_of_picture(model_id: ModelId, request: Request, query: Annotated[SnippetQuery, Query()]) -> str:
        """The same for a picture that was drawn, uploaded or laid together; the program holds its pixels."""
        network, image = await one_image(catalogue, workers, model_id, request)
        picture = embedded_picture((image[0] * 255).round().byte())
        return python_snippet(network, query.kind, picture, query.values(network))

    return router


def _picture(catalogue: Catalogue, model_id: str, network: Network, query: SnippetQuery) -> Program:
    """Lines that make the picture; the embedded ones by their index, all else by its pixels."""
    examples = catalogue.examples(query.source) if query.source else catalogue.examples_of(model_id)
    if query.index >= len(examples):
        raise RefusalError(f"{examples.name} has the examples 0 to {len(examples) - 1}", 404)
    picture = examples.pictures(torch.tensor([query.index]))[0]
    if tuple(picture.shape) != network.model.image_shape:
        raise RefusalError(f"the pictures of {examples.name} do not fit this network; choose its own with source=")
    if examples.id in SAMPLES.values():
        return sample_picture(examples.id, str(query.index))
    return embedded_picture(picture)


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")] if text else []
    except ValueError as error:
        raise RefusalError("vector= takes numbers with commas between them, such as vector=0.1,-0.2") from error
    if not all(math.isfinite(number) for number in numbers):
        raise RefusalError("vector= takes finite numbers")
    return numbers
