"""The ASGI application: the routes behind the guard."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles

from ...errors import HoldfastError
from . import definition, past, present, readings, shown
from .guard import Guard, Refused
from .site import Site

PAGE = Path(__file__).parent.parent / "page"


def application(site: Site) -> Guard:
    """Everything that a service answers."""
    app = FastAPI(title="Holdfast", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.site = site
    app.add_exception_handler(HoldfastError, _failed)
    app.add_exception_handler(Refused, _refused)
    for routes in (present, readings, definition, past):
        app.include_router(routes.router)
    app.add_api_route("/", _page, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    return Guard(app, site.users, site.hosts, site.limits)  # type: ignore[arg-type]


async def _page() -> Response:
    return FileResponse(PAGE / "index.html")


async def _failed(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HoldfastError)
    return JSONResponse({"error": str(error), **shown.fault(error)}, 422)


async def _refused(_request: Request, refused: Exception) -> Response:
    """A body that turned out too long or too slow; what is left of it is not waited for."""
    assert isinstance(refused, Refused)
    return JSONResponse({"error": refused.reason}, refused.status, {**refused.headers, "connection": "close"})
