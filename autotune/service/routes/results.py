"""Routes of the results of a study: its best configuration, verdict, ablation, and costs."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from autotune.decisions.ranges import columns_of, rows_of
from autotune.formatting import as_sentence
from autotune.service.json_values import json_value
from autotune.service.models.orders import LONGEST_WEIGHTS
from autotune.service.models.studies import Decisions, FrontPoint, Trial
from autotune.service.models.values import Values
from autotune.service.problems import ProblemError, answers
from autotune.service.routes.studies import StudyName
from autotune.service.studies import AnswerKey, Studies
from autotune.service.summaries import preferred_point, trial_model
from autotune.service.workers import Answer, answer_long, as_json


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["studies"])

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

    @router.get("/studies/{name}/front", responses=answers(404))
    def choose_point(
        name: StudyName,
        weights: Annotated[str, Query(max_length=LONGEST_WEIGHTS, examples=["time_s=2,energy_j=1"])],
    ) -> FrontPoint:
        """Show the point of a trade-off's front that weights of its metrics choose. Nothing is stored."""
        return preferred_point(studies.summary(name).weighted(weights))

    @router.get("/studies/{name}/decisions", response_model=Decisions | None, responses=answers(404))
    async def show_decisions(name: StudyName, request: Request) -> Response:
        """Show the decision table of a study: what to use where; null before enough runs have ended."""

        def make(key: AnswerKey) -> Answer:
            table = studies.decision_table(name, key.version)
            if table is None:
                return as_json(None)
            texts = {"columns": columns_of(table), "rows": rows_of(table)}
            return as_json(Decisions(**json_value(texts | {"sentences": [*map(as_sentence, table.sentences())]})))

        return await answer_long(request, partial(studies.key, name, "decisions"), make)

    @router.get("/studies/{name}/verdict", responses=answers(404))
    def show_verdict(name: StudyName) -> Values:
        """Show the comparison of the winner with the default configuration, in interleaved pairs of fresh runs."""
        return _there(studies.summary(name).to_dict()["verdict"], name, "verdict: it comes at the end of a study")

    @router.get("/studies/{name}/ablation", responses=answers(404))
    def show_ablation(name: StudyName) -> Values:
        """Show what each option of the winner is worth."""
        ablation = studies.summary(name).ablation
        ask = f"ablation: `autotune ablate {name}` makes it"
        return _there(None if ablation is None else ablation.to_dict() | {"accepted": ablation.is_accepted}, name, ask)

    @router.get("/studies/{name}/ledger", responses=answers(404))
    def show_ledger(name: StudyName) -> Values:
        """Show the core-seconds that a study spent, and those that it saved."""
        return _there(studies.summary(name).ledger.to_dict(), name, "ledger")

    return router


def _there(value: Any, name: str, what: str) -> Values:  # noqa: ANN401  JSON
    if value is None:
        raise ProblemError(404, f"study {name!r} has no {what}")
    values: Values = json_value(value)
    return values
