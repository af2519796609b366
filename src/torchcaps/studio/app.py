"""The web application: routes of the interface, the page's files, and errors as one sentence of JSON."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from torchcaps._version import __version__
from torchcaps.studio.catalogue import Catalogue
from torchcaps.studio.guard import Guard
from torchcaps.studio.limits import DEFAULT_LIMITS, Limits
from torchcaps.studio.refusal import RefusalError
from torchcaps.studio.routes import example_routes, model_routes, python_routes, upload_routes
from torchcaps.studio.schemas import Config
from torchcaps.studio.static_files import page_files
from torchcaps.studio.workers import Workers

__all__ = ["create_app"]


def create_app(catalogue: Catalogue, hosts: Iterable[str] = (), limits: Limits = DEFAULT_LIMITS) -> FastAPI:
    """The studio as an ASGI application.

    Args:
        catalogue: the models to show.
        hosts: names besides loopback under which it may be asked; see :class:`torchcaps.studio.guard.Guard`.
        limits: on bodies.

    Example:
        >>> import torchcaps
        >>> from torchcaps.studio import Catalogue, create_app
        >>> _ = torchcaps.create_model("capsnet", conv_channels=8, primary_types=2).save_pretrained("small")
        >>> app = create_app(Catalogue(["small"]))
        >>> "/api/models/{model_id}/forward" in app.openapi()["paths"]
        True
    """
    workers = Workers()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        workers.close()

    app = FastAPI(
        title="torchcaps studio",
        version=__version__,
        description="Look inside capsule networks. Tensors travel in the safetensors format.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # FastAPI's pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    for make in (model_routes, python_routes, example_routes, upload_routes):
        app.include_router(make(catalogue, workers), prefix="/api")
    _add_page(app)
    app.add_middleware(Guard, hosts=tuple(hosts), limits=limits)
    app.add_exception_handler(RefusalError, _refused)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failed)
    return app


def _add_page(app: FastAPI) -> None:
    files = page_files()

    @app.get("/config.json", response_model=Config, tags=["page"])
    async def config() -> Config:
        """Tells the page that a server answers."""
        return Config(static=False, version=__version__, examples=None)

    @app.get("/{path:path}", include_in_schema=False)
    async def page(path: str) -> Response:
        found = files.get(path or "index.html")  # a name in a table, never a path on the disk
        if found is None:
            raise RefusalError("there is nothing here; the studio's page is at /", 404)
        return Response(found[0], media_type=found[1], headers={"Cache-Control": "no-cache"})


def _problem(status: int, text: str, headers: Any = None) -> JSONResponse:
    return JSONResponse({"error": text}, status_code=status, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusalError)
    return _problem(error.status, str(error))


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    problems = [f"{'.'.join(map(str, item['loc'][1:]))}: {item['msg']}" for item in error.errors()[:5]]
    return _problem(422, "; ".join(problems)[:1000] or "the request does not fit the interface; see /api/openapi.json")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(
        error.status_code, f"{error.detail}; the interface is described at /api/openapi.json", error.headers
    )


async def _failed(request: Request, error: Exception) -> Response:
    return _problem(500, "the studio failed at this request; its terminal shows why")
