"""Routes of studies: the catalogue, the list, the state of each, and the orders that start, change or delete one."""

from dataclasses import asdict
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from autotune.batch.launcher_names import available_launchers
from autotune.records.labels import Labels
from autotune.service.audit import AuditLog
from autotune.service.catalogue import Catalogue
from autotune.service.json_values import json_value
from autotune.service.models.budgets import Budget
from autotune.service.models.orders import (
    CatalogueEntry,
    Comparison,
    CostEstimate,
    LauncherBrief,
    MoreTrials,
    NewLabels,
    NewStudy,
)
from autotune.service.models.studies import Known, StudyBrief, StudyDetail
from autotune.service.problems import answers
from autotune.service.studies import Studies
from autotune.service.workers import work_long
from autotune.studyfile import NAME
from autotune.supervision import Task

StudyName = Annotated[str, Path(pattern=NAME, max_length=200, description="A study's name.", examples=["qe"])]


def by(request: Request) -> str:
    """Return who sent a request: the owner of its token, or this user."""
    return str(request.scope["state"]["by"])


def routes(studies: Studies, catalogue: Catalogue, audit: AuditLog) -> APIRouter:
    """Return the routes; every order is written to the audit log."""
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
        return [LauncherBrief(name=name) for name in available_launchers()]

    @router.post("/estimate", responses=answers(404, 413, 415))
    async def estimate_cost(new: NewStudy, request: Request) -> CostEstimate | None:
        """Estimate the remaining cost of a study; null without trials of its study file. Nothing is started."""
        found = await work_long(request, partial(studies.estimate, new))
        return None if found is None else CostEstimate(**json_value(asdict(found)))

    @router.get("/studies", responses=answers())
    def list_studies() -> list[StudyBrief]:
        """List the studies in storage, and those that were started here."""
        return studies.briefs()

    @router.get("/studies/{name}", responses=answers(404))
    def show_study(name: StudyName) -> StudyDetail:
        """Show the state and the results of a study."""
        return studies.detail(name)

    @router.get("/known", responses=answers())
    def list_known() -> list[Known]:
        """List the best configuration of each program on each machine, of all studies."""
        return studies.known()

    @router.post("/studies", status_code=201, responses=answers(404, 409, 413, 415))
    def start_study(new: NewStudy, request: Request, response: Response) -> StudyBrief:
        """Start a study of the catalogue, or resume it; with a budget only start it, under a name with its prefix."""
        details = new.model_dump(mode="json", exclude_none=True)
        budget: Budget | None = request.scope["state"].get("budget") or new.budget
        with audit.order(by(request), "start", studies.name_of(new, budget), details):
            brief = studies.start(new, by(request), budget)
        response.headers["Location"] = f"/studies/{brief.name}"
        return brief

    _add_changes(router, studies, audit)
    return router


def _add_changes(router: APIRouter, studies: Studies, audit: AuditLog) -> None:
    """Add the routes that change an existing study."""

    @router.put("/studies/{name}/labels", responses=answers(404, 409, 413, 415))
    def label_study(name: StudyName, new: NewLabels, request: Request) -> StudyBrief:
        """Replace the tags and the note of a study, and whether it is archived."""
        with audit.order(by(request), "label", name, new.model_dump(mode="json")):
            return studies.label(name, Labels(tuple(dict.fromkeys(new.tags)), new.note, new.archived))

    @router.delete("/studies/{name}", status_code=204, responses=answers(404, 409))
    def delete_study(name: StudyName, request: Request) -> None:
        """Delete a study that does not run, and the folders of its runs."""
        with audit.order(by(request), "delete", name):
            studies.delete(name)

    @router.post("/studies/{name}/pause", status_code=202, responses=answers(404, 409))
    def pause_study(name: StudyName, request: Request) -> StudyBrief:
        """Start no more runs. Those in flight end, and are kept."""
        with audit.order(by(request), "pause", name):
            return studies.pause(name, by(request))

    @router.post("/studies/{name}/resume", status_code=202, responses=answers(404, 409))
    def resume_study(name: StudyName, request: Request) -> StudyBrief:
        """Resume a study that does not run."""
        with audit.order(by(request), "resume", name):
            return studies.resume(name, by(request))

    @router.post("/studies/{name}/stop", status_code=202, responses=answers(404, 409))
    def stop_study(name: StudyName, request: Request) -> StudyBrief:
        """Stop a study now. Runs in flight are ended, and made again when it is resumed."""
        with audit.order(by(request), "stop", name):
            return studies.stop(name, by(request))

    @router.post("/studies/{name}/extend", status_code=202, responses=answers(404, 409, 413, 415))
    def extend_study(name: StudyName, more: MoreTrials, request: Request) -> StudyBrief:
        """Make more trials of a study that does not run, and compare its winner with the default again."""
        with audit.order(by(request), "extend", name, {"trials": more.trials}):
            return studies.extend(name, more.trials, by(request))

    @router.post("/studies/{name}/confirm", status_code=202, responses=answers(404, 409, 413, 415))
    def confirm_study(name: StudyName, asked: Comparison, request: Request) -> StudyBrief:
        """Compare the best trials of a study that does not run with the default in fresh runs.

        A study with a verdict needs a larger number of `pairs`, a trade-off needs `weights`.
        """
        with audit.order(by(request), "confirm", name, asked.model_dump(exclude_none=True)):
            return studies.compare(name, Task.CONFIRM, by(request), asked)

    @router.post("/studies/{name}/ablate", status_code=202, responses=answers(404, 409))
    def ablate_study(name: StudyName, request: Request) -> StudyBrief:
        """Measure the worth of each changed option of the winner in fresh runs."""
        with audit.order(by(request), "ablate", name):
            return studies.compare(name, Task.ABLATE, by(request))
