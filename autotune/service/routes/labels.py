"""The route of labels: what users note of a study."""

from fastapi import APIRouter, Request

from autotune.records.labels import Labels
from autotune.service.audit import AuditLog
from autotune.service.models.orders import NewLabels
from autotune.service.models.studies import StudyBrief
from autotune.service.problems import answers
from autotune.service.routes.studies import StudyName, by
from autotune.service.studies import Studies


def routes(studies: Studies, audit: AuditLog) -> APIRouter:
    """Return the route; what is ordered is written down."""
    router = APIRouter(tags=["studies"])

    @router.put("/studies/{name}/labels", responses=answers(404, 409, 413, 415))
    def label_study(name: StudyName, new: NewLabels, request: Request) -> StudyBrief:
        """Note tags and a text of a study, and whether it is archived; they take the place of those before."""
        with audit.order(by(request), "label", name, new.model_dump(mode="json")):
            return studies.label(name, Labels(tuple(dict.fromkeys(new.tags)), new.note, new.archived))

    return router
