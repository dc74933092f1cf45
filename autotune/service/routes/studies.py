"""Routes of studies: which there are, how they stand, and what is to become of them."""

from typing import Annotated

from fastapi import APIRouter, Path, Request

from autotune.service.audit import AuditLog
from autotune.service.models.orders import MoreTrials
from autotune.service.models.studies import StudyBrief, StudyDetail
from autotune.service.problems import answers
from autotune.service.studies import Studies
from autotune.studyfile import NAME
from autotune.supervision import Task

StudyName = Annotated[str, Path(pattern=NAME, max_length=200, description="A study's name.", examples=["qe"])]


def by(request: Request) -> str:
    """Return the user behind a request: the owner of the token, or this user."""
    return str(request.scope["state"]["by"])


def routes(studies: Studies, audit: AuditLog) -> APIRouter:
    """Return the routes; what is ordered is written down."""
    router = APIRouter(tags=["studies"])

    @router.get("/studies", responses=answers())
    def list_studies() -> list[StudyBrief]:
        """List the studies in storage, and those that were started here."""
        return studies.briefs()

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

    @router.post("/studies/{name}/extend", status_code=202, responses=answers(404, 409, 413, 415))
    def extend_study(name: StudyName, more: MoreTrials, request: Request) -> StudyBrief:
        """Make more trials of a study that does not run, and compare its winner with the default anew."""
        with audit.order(by(request), "extend", name, {"trials": more.trials}):
            return studies.extend(name, more.trials, by(request))

    @router.post("/studies/{name}/confirm", status_code=202, responses=answers(404, 409))
    def confirm_study(name: StudyName, request: Request) -> StudyBrief:
        """Compare the best trials of a study that does not run with the default, in fresh runs."""
        with audit.order(by(request), "confirm", name):
            return studies.compare(name, Task.CONFIRM, by(request))

    @router.post("/studies/{name}/ablate", status_code=202, responses=answers(404, 409))
    def ablate_study(name: StudyName, request: Request) -> StudyBrief:
        """Measure what each changed option of the winner is worth, in fresh runs."""
        with audit.order(by(request), "ablate", name):
            return studies.compare(name, Task.ABLATE, by(request))

    return router
