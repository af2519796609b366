"""What the routes have in common: how tensors are declared, read and answered."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Annotated, Any

from fastapi import Path, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from torch import Tensor

from torchcaps.studio import looking
from torchcaps.studio.catalogue import Catalogue
from torchcaps.studio.network import Network
from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.schemas import Problem
from torchcaps.studio.tensors import MEDIA_TYPE, pack_tensors, unpack_tensors
from torchcaps.studio.workers import Workers

__all__ = [
    "BINARY",
    "TENSORS_IN",
    "ModelId",
    "TensorResponse",
    "WholeNumber",
    "find_network",
    "one_image",
    "problems",
    "read_tensors",
    "tensor_answer",
]


def _digits(value: object) -> object:
    if isinstance(value, str) and not re.fullmatch("-?[0-9]{1,19}", value):
        raise ValueError("must be a whole number")
    return value


ModelId = Annotated[
    str,
    Path(
        pattern=r"^[A-Za-z0-9._\-]{1,128}(@[0-9]{1,11})?$",
        description="An id of GET /api/models, or of one of its checkpoints (id@step).",
    ),
]
WholeNumber = Annotated[int, BeforeValidator(_digits)]
"""A number as a person writes it: neither 1.0 nor 1_000."""
BINARY: dict[str, Any] = {"type": "string", "format": "binary"}
TENSORS_IN: dict[str, Any] = {"requestBody": {"required": True, "content": {MEDIA_TYPE: {"schema": BINARY}}}}
PROBLEMS: dict[int, str] = {
    400: "The body is not what was expected.",
    403: "Asked under a foreign name or from another origin.",
    404: "There is no such model, example or part.",
    413: "The body is too large.",
    415: "The body is of another kind.",
    422: "A parameter is missing or out of range.",
    503: "Too many requests wait.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declares the answers to requests that are not served."""
    content = {"application/json": {"schema": Problem.model_json_schema()}}  # whatever kind the route's own answer is
    return {status: {"description": PROBLEMS[status], "content": content} for status in (403, *statuses)}


class StrictRoute(APIRoute):
    """A route that refuses a query it does not know, so that a slip of the pen is not taken for a choice."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().__init__(path, endpoint, **options)
        self.known = set(inspect.signature(endpoint).parameters)
        self.reads_all = "query" in self.known  # such a route has a schema of its own, which refuses

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            names = [name for name, _ in request.query_params.multi_items()]
            for name in names:
                if names.count(name) > 1:
                    raise RefusalError(f"the parameter {name[:80]!r} is given more than once", 422)
                if not self.reads_all and name not in self.known - {"model_id", "index", "request"}:
                    raise RefusalError(f"there is no parameter {name[:80]!r} here; see /api/openapi.json", 422)
            return await handle(request)

        return strict


class TensorResponse(Response):
    """Tensors as an answer."""

    media_type = MEDIA_TYPE


def tensor_answer(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> TensorResponse:
    """Tensors, and strings beside them, ready to be sent."""
    return TensorResponse(pack_tensors(tensors, metadata))


async def read_tensors(request: Request) -> dict[str, Tensor]:
    """The tensors of a request's body."""
    kind = request.headers.get("content-type", MEDIA_TYPE).partition(";")[0].strip().lower()
    if kind not in (MEDIA_TYPE, "application/octet-stream"):
        raise RefusalError(f"send the body as {MEDIA_TYPE}", 415)
    return unpack_tensors(await request.body())


async def find_network(catalogue: Catalogue, workers: Workers, model_id: str) -> Network:
    """The network of an id, at once when it is in memory."""
    found = catalogue.in_memory(model_id)
    return await workers.run(catalogue.network, model_id) if found is None else found


async def one_image(catalogue: Catalogue, workers: Workers, model_id: str, request: Request) -> tuple[Network, Tensor]:
    """The network, and the one picture ``[1, C, H, W]`` of a request."""
    network = await find_network(catalogue, workers, model_id)
    return network, looking.checked_images(network, await read_tensors(request), most=1)
