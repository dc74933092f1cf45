"""Routes of what happens: events, and what a study's process writes."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from autotune.service.hub import LIST, Hub, Still
from autotune.service.problems import answers
from autotune.service.routes.studies import StudyName
from autotune.service.studies import Studies

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: the state at once, and then whenever it changes.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


class Events(StreamingResponse):
    """A stream of server-sent events, which nothing on the way may keep back."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], status_code: int = 200) -> None:
        """Send `events` as they come."""
        super().__init__(events, status_code, {"X-Accel-Buffering": "no"})


def routes(studies: Studies, hub: Hub) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["live"])

    @router.get("/events", response_class=Events, responses={**answers(), **_EVENTS})
    async def follow_studies(request: Request) -> Events:
        """Follow the list of studies: events `studies`."""
        return Events(hub.follow(LIST, *_still(request)))

    @router.get("/studies/{name}/events", response_class=Events, responses={**answers(404), **_EVENTS})
    async def follow_study(name: StudyName, request: Request) -> Events:
        """Follow a study: events `study`, and `gone` when it was deleted."""
        await run_in_threadpool(studies.brief, name)
        return Events(hub.follow(name, *_still(request)))

    @router.get("/studies/{name}/log", response_class=PlainTextResponse, responses=answers(404))
    def show_log(name: StudyName, lines: Annotated[int, Query(ge=1, le=5000)] = 200) -> str:
        """Show the last lines that a study's process wrote."""
        return studies.log(name, lines)

    return router


def _still(request: Request) -> tuple[Still, ...]:
    """Return how to find out whether the client may still follow; this user always may."""
    still = request.scope["state"].get("still")
    return () if still is None else (still,)
