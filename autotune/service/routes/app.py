"""The application: everything that the service answers, put together."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import FastAPI

from autotune import __version__
from autotune.service.access import AccessControl
from autotune.service.asktell_studies import AskTellStudies
from autotune.service.audit import AuditLog
from autotune.service.catalogue import Catalogue
from autotune.service.hub import Hub
from autotune.service.limiter import Limiter
from autotune.service.models.values import Health
from autotune.service.problems import Problem, handle_problems
from autotune.service.routes import asking, hints, live, page, pictures, predicting, results, studies, trials
from autotune.service.settings import Settings
from autotune.service.studies import Studies
from autotune.service.study_manager import ReadOnlyManager
from autotune.service.summaries import StudySummaries
from autotune.service.tokens import TokenBook
from autotune.service.workers import workers_by_kind
from autotune.storage.studies import StoredStudies
from autotune.supervision import StudySupervisor

_TICK_S = 1.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Managers:
    """The managers of a service that may change studies."""

    supervisor: StudySupervisor
    opened: AskTellStudies

    @classmethod
    def of(cls, settings: Settings) -> "_Managers":
        return cls(StudySupervisor(settings.folder, settings.url), AskTellStudies(settings.folder, settings.url))


def create_app(settings: Settings) -> FastAPI:
    """Return the application of a service.

    Its `state.end_streams` ends requests that never end by themselves, or late: followers, and clients that wait for a
    run or for a long answer.

    Raises:
        StorageError: the storage, the service's folder, or the file of tokens cannot be used.
        BusyError: another service has the folder.
    """
    TokenBook(settings.tokens).known()  # refuses a file that others could have written
    catalogue = Catalogue(settings.catalogue)
    summaries = StudySummaries(StoredStudies(settings.url, read_only=settings.read_only))
    managers = None if settings.read_only else _Managers.of(settings)
    nobody = ReadOnlyManager()
    all_studies = Studies(
        catalogue, summaries, managers.supervisor if managers else nobody, managers.opened if managers else nobody
    )
    hub, workers = Hub(all_studies.news), workers_by_kind()

    tasks: list[asyncio.Task[None]] = []

    async def end_streams() -> None:
        # Refuse new work first: what is waited for below takes long while many ask.
        hub.close()
        for one in workers.values():
            one.end()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if managers is not None:
            await to_thread.run_sync(managers.opened.close, limiter=CapacityLimiter(1))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        tasks.append(asyncio.create_task(hub.run()))
        if managers is not None:
            # Two tasks: a storage that is away keeps ask-and-tell studies waiting, not the others.
            tasks.extend(asyncio.create_task(_supervise(one.tick)) for one in (managers.supervisor, managers.opened))
        try:
            yield
        finally:
            await end_streams()
            if managers is not None:
                managers.supervisor.close()

    audit = AuditLog(settings.audit)
    app = ServiceApp(
        title="autotune",
        version=__version__,
        description="Studies of this host: start and follow them, ask for predictions, and ask and tell.",
        docs_url=None,  # its page would load scripts from another site; `/docs` is the service's own
        redoc_url=None,
        lifespan=lifespan,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.end_streams = end_streams
    app.state.limits = settings.limits
    app.include_router(studies.routes(all_studies, catalogue, audit))
    app.include_router(results.routes(all_studies))
    app.include_router(trials.routes(all_studies))
    app.include_router(hints.routes(all_studies))
    app.include_router(live.routes(all_studies, hub))
    app.include_router(pictures.routes(all_studies))
    app.include_router(predicting.routes(predicting.Predictor(catalogue, settings.url, summaries.stored)))
    if managers is not None:
        app.include_router(asking.routes(managers.opened))
    app.include_router(page.routes())

    @app.get("/health", tags=["service"], openapi_extra={"security": []})
    async def health() -> Health:
        """Say that the service runs; needs no token."""
        return Health(status="ok", version=__version__, read_only=settings.read_only)

    handle_problems(app)
    app.add_middleware(Limiter, limits=settings.limits, workers=workers)
    app.add_middleware(AccessControl, settings=settings)
    return app


async def _supervise(tick: Callable[[], list[str]]) -> None:
    """Call `tick` once a second, in a thread that no request can take."""
    trouble, own_thread = "", CapacityLimiter(1)
    while True:
        try:
            for line in await to_thread.run_sync(tick, limiter=own_thread):
                _log.info("%s", line)
            trouble = ""
        except Exception as error:  # noqa: BLE001  it is logged
            # The disk or the storage may be away for a while: the log says so once.
            if str(error) != trouble:
                _log.exception("looking after the studies failed; trying again")
            trouble = str(error)
        await asyncio.sleep(_TICK_S)


class ServiceApp(FastAPI):
    """The application, whose OpenAPI description has problems and tokens."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description."""
        description = super().openapi()
        description["components"]["schemas"]["Problem"] = Problem.model_json_schema()
        description["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        description["security"] = [{"token": []}]
        for operations in description["paths"].values():
            for operation in operations.values():
                operation["summary"] = operation["description"].partition("\n")[0].rstrip(".")
        return description
