"""The route of what is known to work."""

from fastapi import APIRouter

from autotune.service.models.studies import Known
from autotune.service.problems import answers
from autotune.service.summaries import StudySummaries


def routes(reading: StudySummaries) -> APIRouter:
    """Return the route."""
    router = APIRouter(tags=["studies"])

    @router.get("/known", responses=answers())
    def list_known() -> list[Known]:
        """List what is known to work: the best configuration of each program on each machine."""
        return reading.known()

    return router
