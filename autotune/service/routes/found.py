"""Routes of what a study has found: its trials, the best of them, and what is known of it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from autotune.service.json_values import json_value
from autotune.service.models.studies import Trial
from autotune.service.models.trials import Trials
from autotune.service.models.values import Values
from autotune.service.problems import ProblemError, answers
from autotune.service.routes.studies import StudyName
from autotune.service.studies import Studies
from autotune.service.summaries import rows_of, trial_model


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["studies"])

    @router.get("/studies/{name}/trials", responses=answers(404))
    def list_trials(
        name: StudyName,
        after: Annotated[int, Query(ge=-1, lt=2**31, description="Only trials with greater numbers.")] = -1,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    ) -> Trials:
        """List the trials of a study, by number."""
        rows, following = rows_of(studies.summary(name), after, limit)
        return Trials(trials=rows, next=following)

    @router.get("/studies/{name}/incumbent", responses=answers(404))
    def show_incumbent(name: StudyName) -> Trial:
        """Show the best valid configuration so far."""
        summary = studies.summary(name)
        incumbent = trial_model(summary, summary.best)
        if incumbent is None:
            nothing = (
                "has no configuration that keeps its limits" if summary.nearest else "has no valid measurement yet"
            )
            raise ProblemError(404, f"study {name!r} {nothing}")
        return incumbent

    @router.get("/studies/{name}/verdict", responses=answers(404))
    def show_verdict(name: StudyName) -> Values:
        """Show the comparison of the winner with the default configuration, in interleaved pairs of fresh runs."""
        return _there(studies.summary(name).to_dict()["verdict"], name, "verdict: it comes at the end of a study")

    @router.get("/studies/{name}/ablation", responses=answers(404))
    def show_ablation(name: StudyName) -> Values:
        """Show what each option of the winner is worth."""
        ablation = studies.summary(name).ablation
        ask = f"ablation: `autotune ablate {name}` makes it"
        return _there(None if ablation is None else ablation.to_dict() | {"accepted": ablation.accepted}, name, ask)

    @router.get("/studies/{name}/ledger", responses=answers(404))
    def show_ledger(name: StudyName) -> Values:
        """Show what a study cost in core-seconds, and what it did not have to spend."""
        return _there(studies.summary(name).ledger.to_dict(), name, "ledger")

    return router


def _there(value: Any, name: str, what: str) -> Values:  # noqa: ANN401  JSON
    if value is None:
        raise ProblemError(404, f"study {name!r} has no {what}")
    values: Values = json_value(value)
    return values
