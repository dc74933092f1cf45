"""Routes of studies: which there are, how they stand, and what is to become of them."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from autotune.service.audit import AuditLog
from autotune.service.catalogue import Catalogue
from autotune.service.models.orders import CatalogueEntry, NewStudy
from autotune.service.models.studies import StudyBrief, StudyDetail
from autotune.service.problems import answers
from autotune.service.studies import Studies
from autotune.studyfile import NAME

StudyName = Annotated[str, Path(pattern=NAME, max_length=200, description="A study's name.", examples=["qe"])]


def by(request: Request) -> str:
    """Return the user behind a request: the owner of the token, or this user."""
    return str(request.scope["state"]["by"])


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

    @router.get("/studies", responses=answers())
    def list_studies() -> list[StudyBrief]:
        """List the studies in storage, and those that were started here."""
        return studies.briefs()

    @router.post("/studies", status_code=201, responses=answers(404, 409, 413, 415))
    def start_study(new: NewStudy, request: Request, response: Response) -> StudyBrief:
        """Start a study of the catalogue, or go on with it."""
        details = new.model_dump(mode="json", exclude_none=True)
        with audit.order(by(request), "start", new.name or new.study, details):
            brief = studies.start(new, by(request))
        response.headers["Location"] = f"/studies/{brief.name}"
        return brief

    @router.get("/studies/{name}", responses=answers(404))
    def show_study(name: StudyName) -> StudyDetail:
        """Show how a study stands."""
        return studies.detail(name)

    @router.delete("/studies/{name}", status_code=204, responses=answers(404, 409))
    def delete_study(name: StudyName, request: Request) -> None:
        """Delete a study that does not run. The folders of its runs stay."""
        with audit.order(by(request), "delete", name):
            studies.delete(name)

    @router.post("/studies/{name}/pause", status_code=202, responses=answers(404, 409))
    def pause_study(name: StudyName, request: Request) -> StudyBrief:
        """Start no run any more; those in flight end, and are kept."""
        with audit.order(by(request), "pause", name):
            return studies.pause(name, by(request))

    @router.post("/studies/{name}/resume", status_code=202, responses=answers(404, 409))
    def resume_study(name: StudyName, request: Request) -> StudyBrief:
        """Go on with a study that does not run."""
        with audit.order(by(request), "resume", name):
            return studies.resume(name, by(request))

    @router.post("/studies/{name}/stop", status_code=202, responses=answers(404, 409))
    def stop_study(name: StudyName, request: Request) -> StudyBrief:
        """End a study now; runs in flight are ended and will be made again."""
        with audit.order(by(request), "stop", name):
            return studies.stop(name, by(request))

    return router
