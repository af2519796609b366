"""``/api/upload``: a picture of the visitor's own."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from torchcaps.data.window import to_unit_float
from torchcaps.studio.catalogue import Catalogue
from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.routes.shared import BINARY, StrictRoute, TensorResponse, find_network, problems, tensor_answer
from torchcaps.studio.uploads import Invert, read_upload
from torchcaps.studio.workers import Workers

__all__ = ["upload_routes"]

PICTURE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/bmp", "image/gif", "application/octet-stream")
PICTURE_IN = {"requestBody": {"required": True, "content": {kind: {"schema": BINARY} for kind in PICTURE_TYPES}}}
ForModel = Annotated[str, Query(max_length=160, description="The model that the picture is for.")]


def upload_routes(catalogue: Catalogue, workers: Workers) -> APIRouter:
    """The route for people's own pictures."""
    router = APIRouter(route_class=StrictRoute, tags=["upload"])

    @router.post(
        "/upload",
        response_class=TensorResponse,
        responses=problems(400, 404, 413, 415, 422, 503),
        openapi_extra=PICTURE_IN,
    )
    async def upload(request: Request, model: ForModel, invert: Invert = "auto") -> TensorResponse:
        """The picture as the model sees it. It stays in memory and is forgotten with the answer."""
        kind = request.headers.get("content-type", PICTURE_TYPES[-1]).partition(";")[0].strip().lower()
        if kind not in PICTURE_TYPES:
            raise RefusalError(f"send the bytes of the picture as one of {', '.join(PICTURE_TYPES)}", 415)
        network = await find_network(catalogue, workers, model)
        seen = await workers.run(read_upload, await request.body(), network, invert)
        return tensor_answer({"image": to_unit_float(seen.pixels)}, {"inverted": str(seen.inverted).lower()})

    return router
