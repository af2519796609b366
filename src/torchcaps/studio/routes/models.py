"""``/api/models``: what there is, and what each network makes of a picture."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from fastapi import APIRouter, Query, Request

from torchcaps.studio import looking
from torchcaps.studio.affine import Kind
from torchcaps.studio.catalogue import Catalogue
from torchcaps.studio.routes.shared import (
    TENSORS_IN,
    ModelId,
    StrictRoute,
    TensorResponse,
    WholeNumber,
    find_network,
    one_image,
    problems,
    read_tensors,
    tensor_answer,
)
from torchcaps.studio.schemas import ModelFacts
from torchcaps.studio.workers import Workers

__all__ = ["model_routes"]

Precision = Annotated[Literal["f16", "f32"], Query(description="Type of the numbers that are sent.")]
TENSORS_IN_AND_OUT: dict[str, Any] = {
    "response_class": TensorResponse,
    "responses": problems(400, 404, 413, 415, 422, 503),
    "openapi_extra": TENSORS_IN,
}
Iterations = Annotated[WholeNumber, Query(ge=1, le=10, description="R of the routing.")]


def model_routes(catalogue: Catalogue, workers: Workers) -> APIRouter:
    """Routes about models; ``catalogue`` has them, ``workers`` do the work."""
    router = APIRouter(prefix="/models", route_class=StrictRoute, tags=["models"])

    @router.get("", response_model=list[ModelFacts], responses=problems(503))
    async def models() -> list[ModelFacts]:
        """Every model; ask again to see new checkpoints of a run that trains."""
        return await workers.run(catalogue.facts)

    @router.get("/{model_id}/decoder", response_class=TensorResponse, responses=problems(404, 422, 503))
    async def decoder(model_id: ModelId, dtype: Precision = "f16") -> TensorResponse:
        """Weights of the fully connected decoder: ReLU between the layers, sigmoid at the end."""
        network = await find_network(catalogue, workers, model_id)
        return tensor_answer(looking.decoder_weights(network, dtype == "f16"))

    @router.post("/{model_id}/forward", **TENSORS_IN_AND_OUT)
    async def forward(model_id: ModelId, request: Request) -> TensorResponse:
        """Lengths (the scores), capsules and reconstruction of up to 64 pictures; probabilities of a CNN."""
        network = await find_network(catalogue, workers, model_id)
        images = looking.checked_images(network, await read_tensors(request))
        return tensor_answer(await workers.forward(network, images))

    @router.post("/{model_id}/decode", **TENSORS_IN_AND_OUT)
    async def decode(model_id: ModelId, request: Request) -> TensorResponse:
        """Pictures of masked capsules, for decoders that the page cannot run itself."""
        network = await find_network(catalogue, workers, model_id)
        capsules = (await read_tensors(request)).get("capsules", torch.empty(0))
        return tensor_answer(await workers.run(looking.decode, network, capsules))

    @router.post("/{model_id}/votes", **TENSORS_IN_AND_OUT)
    async def votes(model_id: ModelId, request: Request, dtype: Precision = "f32") -> TensorResponse:
        """What the routing loop starts from, for one picture."""
        network, image = await one_image(catalogue, workers, model_id, request)
        return tensor_answer(await workers.run(looking.votes, network, image, dtype == "f16"))

    @router.post("/{model_id}/trace", **TENSORS_IN_AND_OUT)
    async def trace(model_id: ModelId, request: Request, iterations: Iterations = 3) -> TensorResponse:
        """The routing of one picture, iteration by iteration, as PyTorch does it; only ``dynamic`` takes another R."""
        network, image = await one_image(catalogue, workers, model_id, request)
        return tensor_answer(await workers.run(looking.trace, network, image, iterations))

    @router.get("/{model_id}/statistics", response_class=TensorResponse, responses=problems(404, 422, 503))
    async def statistics(model_id: ModelId) -> TensorResponse:
        """Mean and deviation of each class capsule over the test examples of its class."""
        _ = (await find_network(catalogue, workers, model_id)).capsule_model  # a CNN is refused before the work
        found = await workers.run_long(catalogue.survey, model_id)
        return tensor_answer({"mean": found.mean, "std": found.std, "count": found.count})

    @router.post("/{model_id}/affine", **TENSORS_IN_AND_OUT)
    async def affine(model_id: ModelId, request: Request, kind: Kind) -> TensorResponse:
        """One picture over the whole range of a slider: values, lengths (or probabilities) and pictures."""
        network, image = await one_image(catalogue, workers, model_id, request)
        return tensor_answer(await workers.run(looking.affine, network, image, kind))

    return router
