"""Routes of the table of a study's trials: chosen, sorted, a part of it at a time, and as a file."""

import json
from collections import Counter
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from autotune.results.export import as_csv
from autotune.results.trial_choice import TrialChoice
from autotune.results.trial_columns import row_of, state_of, trial_columns
from autotune.service.json_values import json_value
from autotune.service.models.trials import TrialPage
from autotune.service.problems import answers
from autotune.service.routes.studies import StudyName
from autotune.service.studies import Studies
from autotune.service.summaries import row_models

_WORD = 200
_FILES: dict[str, dict[str, str]] = {"text/csv": {}, "application/json": {}}


def chosen(
    where: Annotated[str, Query(max_length=1000, description="Comparisons: np >= 8, blas = fast, value < 3.")] = "",
    state: Annotated[str, Query(max_length=_WORD, description="Only trials of this state.")] = "",
    sort: Annotated[str, Query(max_length=_WORD, description="A parameter or a figure, such as value.")] = "trial",
    *,
    down: Annotated[bool, Query(description="The greatest first.")] = False,
) -> TrialChoice:
    """Read which trials are wanted."""
    return TrialChoice.of(where, state, sort, down=down)


Chosen = Annotated[TrialChoice, Depends(chosen)]


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/studies/{name}", tags=["studies"])

    @router.get("/table", responses=answers(404))
    def show_table(
        name: StudyName,
        choice: Chosen,
        offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> TrialPage:
        """List the chosen trials of a study, sorted, a part at a time."""
        summary = studies.summary(name)
        trials = choice.trials(summary)
        return TrialPage(
            trials=row_models(summary, trials[offset : offset + limit]),
            total=len(trials),
            states=dict(sorted(Counter(map(state_of, summary.trials)).items())),
            parameters=[parameter["name"] for parameter in summary.definition.space["parameters"]],
        )

    @router.get("/table.{form}", response_class=Response, responses=answers(404) | {200: {"content": _FILES}})
    def save_table(name: StudyName, form: Literal["csv", "json"], choice: Chosen) -> Response:
        """Give the chosen trials of a study as a file, with the columns of `autotune trials --csv`."""
        summary = studies.summary(name)
        columns = trial_columns(summary.standings, summary.definition)
        rows = [json_value(row_of(trial, columns)) for trial in choice.trials(summary)]
        text = as_csv(rows) if form == "csv" else json.dumps(rows, indent=1) + "\n"
        kind = "text/csv; charset=utf-8" if form == "csv" else "application/json"
        about = f'attachment; filename="{name}-trials.{form}"'
        return Response(text, media_type=kind, headers={"Content-Disposition": about})

    return router
