"""The ASGI application of the service: all routes, behind the checks of ``guard``."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from ...errors import HoldfastError
from . import answers, definition, past, present, readings
from .guard import Guard, RefusedRequest
from .site import Site

PAGE = Path(__file__).parent.parent / "page"


def application(site: Site) -> Guard:
    """Create the ASGI application for a site, with all routes and error handlers, behind a ``Guard``."""
    app = FastAPI(title="Holdfast", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.site = site
    app.add_exception_handler(HoldfastError, _failed)
    app.add_exception_handler(RefusedRequest, _refused)
    for routes in (present, readings, definition, past):
        app.include_router(routes.router)
    app.add_api_route("/", _page, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    return Guard(app, site.users, site.hosts, site.limits)  # type: ignore[arg-type]


async def _page() -> Response:
    return FileResponse(PAGE / "index.html")


async def _failed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HoldfastError)
    return JSONResponse({"error": str(error), **answers.fault(error)}, 422)


async def _refused(_request: Request, definition_error: Exception) -> Response:
    """Answer a request that was refused while its body was read, and close the connection.

    The rest of the body is not read.
    """
    assert isinstance(definition_error, RefusedRequest)
    return JSONResponse(
        {"error": definition_error.reason},
        definition_error.status,
        {**definition_error.headers, "connection": "close"},
    )
