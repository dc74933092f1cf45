"""Routes of what happens now: events, the log of a study, and how many studies run."""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from autotune.service.hub import LIST, Hub, MayFollow
from autotune.service.problems import answers
from autotune.service.routes.studies import StudyName
from autotune.service.studies import Studies
from autotune.service.workers import Place
from autotune.supervision import StateName

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: the state at once, and then whenever it changes.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


class Events(StreamingResponse):
    """A stream of server-sent events, which proxies must not buffer."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes], status_code: int = 200) -> None:
        """Send `events` as they come."""
        super().__init__(events, status_code, {"X-Accel-Buffering": "no"})


class OpenMetrics(PlainTextResponse):
    """Figures for Prometheus."""

    media_type = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def routes(studies: Studies, hub: Hub) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["live"])

    @router.get("/events", response_class=Events, responses={**answers(), **_EVENTS})
    async def follow_studies(request: Request) -> Events:
        """Follow the list of studies: events `studies`."""
        return Events(hub.follow(LIST, *_may_follow(request)))

    @router.get("/studies/{name}/events", response_class=Events, responses={**answers(404), **_EVENTS})
    async def follow_study(name: StudyName, request: Request) -> Events:
        """Follow a study: events `study`, and `gone` when it was deleted."""
        place: Place = request.scope["state"]["place"]
        await place.take()
        await run_in_threadpool(studies.brief, name)
        place.leave()
        return Events(hub.follow(name, *_may_follow(request)))

    @router.get("/studies/{name}/log", response_class=PlainTextResponse, responses=answers(404))
    def show_log(name: StudyName, lines: Annotated[int, Query(ge=1, le=5000)] = 200) -> str:
        """Show the last lines of a study's log."""
        return studies.log(name, lines)

    @router.get("/metrics", response_class=OpenMetrics, responses=answers())
    def count_studies() -> str:
        """Count the studies in each state, for Prometheus."""
        snapshot = studies.snapshot()
        counts = Counter(snapshot.state(name).state for name in snapshot.names)
        lines = [f'autotune_studies{{state="{state}"}} {counts[state]}' for state in StateName]
        return "\n".join(["# TYPE autotune_studies gauge", *lines, "# EOF", ""])

    return router


def _may_follow(request: Request) -> tuple[MayFollow, ...]:
    """Return the check of the client's token; the service's own user needs none."""
    check = request.scope["state"].get("may_follow")
    return () if check is None else (check,)
