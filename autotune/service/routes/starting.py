"""Routes of what may be started: the catalogue, the launchers, what a study would cost, and its start."""

from dataclasses import asdict

from fastapi import APIRouter, Request, Response

from autotune.batch.launchers_here import launchers_here
from autotune.service.audit import AuditLog
from autotune.service.catalogue import Catalogue
from autotune.service.json_values import json_value
from autotune.service.models.orders import CatalogueEntry, CostEstimate, LauncherBrief, NewStudy
from autotune.service.models.studies import StudyBrief
from autotune.service.problems import answers
from autotune.service.routes.studies import by
from autotune.service.studies import Studies


def routes(studies: Studies, catalogue: Catalogue, audit: AuditLog) -> APIRouter:
    """Return the routes; what is ordered is written down."""
    router = APIRouter(tags=["studies"])

    @router.get("/catalogue", responses=answers())
    def list_catalogue() -> list[CatalogueEntry]:
        """List the studies that may be started."""
        return [
            CatalogueEntry(
                name=entry.name,
                objective=entry.study.objective,
                description=entry.study.description,
                trials=entry.study.budget.trials,
                ask_tell=entry.ask_tell,
                parameters=list(entry.study.space.parameters),
            )
            for entry in catalogue.entries()
        ]

    @router.get("/launchers", responses=answers())
    def list_launchers() -> list[LauncherBrief]:
        """List what can start runs from the service's host."""
        return [LauncherBrief(name=name) for name in launchers_here()]

    @router.post("/estimate", responses=answers(404, 413, 415))
    def estimate_cost(new: NewStudy) -> CostEstimate | None:
        """Say what a study would still cost; null where nothing was measured of its study file. Nothing is started."""
        found = studies.estimate(new)
        return None if found is None else CostEstimate(**json_value(asdict(found)))

    @router.post("/studies", status_code=201, responses=answers(404, 409, 413, 415))
    def start_study(new: NewStudy, request: Request, response: Response) -> StudyBrief:
        """Start a study of the catalogue, or go on with it."""
        details = new.model_dump(mode="json", exclude_none=True)
        with audit.order(by(request), "start", new.name or new.study, details):
            brief = studies.start(new, by(request))
        response.headers["Location"] = f"/studies/{brief.name}"
        return brief

    return router
