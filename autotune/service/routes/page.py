"""Routes of the page: its files, by name, and no others."""

import functools
import gzip
import hashlib
import importlib.resources
import json
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from autotune.service.problems import ProblemError

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file of the page, plain and compressed; `tag` is a digest of its content."""

    media_type: str
    content: bytes
    packed: bytes
    tag: str


def routes() -> APIRouter:
    """Return the routes."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def show_page(request: Request) -> Response:
        """Show the page."""
        return _answer("index.html", request)

    @router.get("/docs")
    async def show_docs(request: Request) -> HTMLResponse:
        """Show every request to read; needs no token, since it is the same for every service."""
        return HTMLResponse(_docs_page(request.app.openapi()))

    @router.get("/page/{name}")
    async def show_file(name: str, request: Request) -> Response:
        """Show a file of the page."""
        return _answer(name, request)

    return router


def _docs_page(description: Mapping[str, Any]) -> str:
    """Return the OpenAPI description of the service as a page to read: each request, with an example of its body."""
    parts = []
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            model = body.get("$ref", "").rpartition("/")[2]
            examples = description["components"]["schemas"].get(model, {}).get("examples", [])
            parts.append(f"<section class=card><h2><code>{method.upper()} {escape(path)}</code></h2>")
            parts.append(f"<p>{escape(operation['description'])}</p>")
            asked = ", ".join(one["name"] for one in operation.get("parameters", ()) if one["in"] == "query")
            parts.append(f"<p>Query: <code>{escape(asked)}</code></p>" if asked else "")
            parts += [f"<pre>{escape(json.dumps(example))}</pre>" for example in examples[:1]]
            parts.append("</section>")
    return (
        "<!DOCTYPE html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        "<title>autotune: requests</title><link rel=stylesheet href=page/style.css>"
        "<link rel=stylesheet href=page/parts.css><main><h1>Requests</h1>"
        "<p>Each needs a token but <code>/health</code>. "
        f"For programs: <code>/openapi.json</code>.</p>{''.join(parts)}</main></html>"
    )


def _answer(name: str, request: Request) -> Response:
    if name not in _types():
        raise ProblemError(404, f"the page has no file {name!r}")
    file = _read(name)
    headers = {"ETag": file.tag, "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, media_type=file.media_type, headers=headers | {"Content-Encoding": "gzip"})
    return Response(file.content, media_type=file.media_type, headers=headers)


@functools.cache
def _types() -> dict[str, str]:
    """Return the files of the page, by name, with their types."""
    folder = importlib.resources.files("autotune.service") / "page"
    types = {entry.name: _TYPES.get(f".{entry.name.rpartition('.')[2]}") for entry in folder.iterdir()}
    return {name: kind for name, kind in types.items() if kind is not None}


@functools.cache
def _read(name: str) -> File:
    content = (importlib.resources.files("autotune.service") / "page" / name).read_bytes()
    tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
    return File(_types()[name], content, gzip.compress(content), tag)
