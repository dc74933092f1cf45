"""Routes of trials: the list, the sorted and filtered table, also as a file, and one trial with its runs."""

import json
import os
import shlex
import stat
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import Response

from autotune.batch.winner_script import commands_of
from autotune.execution.run_folder import is_folder_of
from autotune.formatting import quantity
from autotune.records.limit import OF_EVERY_RUN
from autotune.records.study import Run
from autotune.results.export import as_csv
from autotune.results.summary import Summary
from autotune.results.trial_choice import TrialChoice
from autotune.results.trial_columns import row_of, state_of, trial_columns
from autotune.service.json_values import json_value
from autotune.service.models.trials import TrialDetail, TrialPage, TrialRun, Trials
from autotune.service.problems import ProblemError, answers
from autotune.service.routes.studies import StudyName
from autotune.service.studies import AnswerKey, Studies
from autotune.service.summaries import row_models, rows_of, value_or_bound
from autotune.service.workers import Answer, answer_long, as_json, work_long
from launchers import STDERR, STDOUT
from launchers.sequence import last_folder
from objectives.base import Metric
from objectives.job_metrics import job_metrics

TrialNumber = Annotated[int, Path(ge=0, lt=2**31, description="A trial's number.", examples=[19])]
_READ_BYTES = 16 * 1024
_WORD = 200
_FILES: dict[str, dict[str, str]] = {"text/csv": {}, "application/json": {}}


async def read_choice(
    where: Annotated[str, Query(max_length=1000, description="Comparisons: np >= 8, blas = fast, value < 3.")] = "",
    state: Annotated[str, Query(max_length=_WORD, description="Only trials of this state.")] = "",
    sort: Annotated[str, Query(max_length=_WORD, description="A parameter or a figure, such as value.")] = "trial",
    *,
    down: Annotated[bool, Query(description="The greatest first.")] = False,
) -> TrialChoice:
    """Read the choice of trials from the query."""
    return TrialChoice.of(where, state, sort, down=down)


Chosen = Annotated[TrialChoice, Depends(read_choice)]


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["studies"])

    @router.get("/studies/{name}/trials", response_model=Trials, responses=answers(404))
    async def list_trials(
        name: StudyName,
        request: Request,
        after: Annotated[int, Query(ge=-1, lt=2**31, description="Only trials with greater numbers.")] = -1,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    ) -> Response:
        """List the trials of a study, by number."""

        def make(key: AnswerKey) -> Answer:
            rows, following = rows_of(studies.summary(name, key.version), after, limit)
            return as_json(Trials(trials=rows, next=following))

        return await answer_long(request, partial(studies.key, name, "trials", request.url.query), make)

    @router.get("/studies/{name}/table", response_model=TrialPage, responses=answers(404))
    async def show_table(
        name: StudyName,
        choice: Chosen,
        request: Request,
        offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Response:
        """List a page of the chosen trials of a study, sorted."""

        def make(key: AnswerKey) -> Answer:
            summary = studies.summary(name, key.version)
            trials = choice.trials(summary)
            page = TrialPage(
                trials=row_models(summary, trials[offset : offset + limit]),
                total=len(trials),
                states=dict(sorted(Counter(map(state_of, summary.trials)).items())),
                parameters=[parameter["name"] for parameter in summary.definition.space["parameters"]],
            )
            return as_json(page)

        return await answer_long(request, partial(studies.key, name, "table", request.url.query), make)

    @router.get(
        "/studies/{name}/table.{form}", response_class=Response, responses=answers(404) | {200: {"content": _FILES}}
    )
    async def save_table(name: StudyName, form: Literal["csv", "json"], choice: Chosen, request: Request) -> Response:
        """Send the chosen trials of a study as a file, with the columns of `autotune trials --format csv`."""

        def make(key: AnswerKey) -> Answer:
            summary = studies.summary(name, key.version)
            columns = trial_columns(summary.standings, summary.definition)
            rows = [json_value(row_of(trial, columns)) for trial in choice.trials(summary)]
            text = as_csv(rows) if form == "csv" else json.dumps(rows, indent=1) + "\n"
            kind = "text/csv; charset=utf-8" if form == "csv" else "application/json"
            about = f'attachment; filename="{name}-trials.{form}"'
            return Answer(text.encode(), kind, {"Content-Disposition": about})

        return await answer_long(request, partial(studies.key, name, "file", form, request.url.query), make)

    @router.get("/studies/{name}/trials/{trial}", responses=answers(404))
    async def show_trial(name: StudyName, trial: TrialNumber, request: Request) -> TrialDetail:
        """Show a trial with its runs, and the end of the output of each."""

        def read() -> TrialDetail:
            summary = studies.summary(name)
            rows, _ = rows_of(summary, trial - 1, 1)
            if not rows or rows[0].trial != trial:
                raise ProblemError(404, f"study {name!r} has no trial {trial}")
            runs = [run for run in studies.store(name).runs() if run.trial == trial]
            metrics = {one.name: one for one in (*OF_EVERY_RUN, *summary.definition.metrics)}
            made = [TrialRun(**_run_fields(run, summary, metrics)) for run in runs]
            return TrialDetail(trial=rows[0], made=made)

        # Not kept: the folders of runs, with their output, may be removed at any time.
        return await work_long(request, read)

    return router


def _run_fields(run: Run, summary: Summary, metrics: Mapping[str, Metric]) -> dict[str, Any]:
    metric, is_replay = summary.standings.metric, summary.definition.replay
    outcome = run.outcome
    figures = {**job_metrics(outcome.usage, outcome.metered), **outcome.metrics}
    figures.pop(metric.name, None)
    ended = outcome.failure.value if outcome.failure is not None else "capped" if outcome.capped else "complete"
    return {
        "purpose": run.series.kind.purpose,
        "state": ended,
        "value": outcome.metrics.get(metric.name),
        "bound": outcome.bound,
        "metrics": json_value(dict(outcome.metrics)),
        "started": run.started,
        "host": run.host,
        "elapsed_s": outcome.usage.elapsed_s,
        "core_s": run.core_s,
        "memory_bytes": outcome.usage.peak_memory_bytes,
        "text": value_or_bound(outcome.metrics.get(metric.name), outcome.bound, metric),
        "texts": {name: quantity(value, metrics.get(name, Metric(name, ""))) for name, value in figures.items()},
        "disturbance": outcome.disturbance.describe(),
        "message": outcome.message,
        "commands": [] if is_replay else [shlex.join(command) for command in commands_of(run.job)],
        **read_run_output(run),
    }


def read_run_output(run: Run) -> dict[str, str]:
    """Return the ends of a run's output; empty if its folder is gone, or another run's."""
    folder = FilePath(run.job.get("folder") or "")
    if not folder.is_absolute() or not is_folder_of(folder, run.outcome.usage):
        return {"stdout": "", "stderr": ""}
    ran = last_folder(folder, [FilePath(part["folder"]) for part in run.job.get("parts", ())])
    return {"stdout": _end_of(ran / STDOUT), "stderr": _end_of(ran / STDERR)}


def _end_of(path: FilePath) -> str:
    """Return the end of a file; a program may have left a link or a pipe of that name."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:  # noqa: PTH123  a descriptor
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _READ_BYTES))
        text = file.read(_READ_BYTES).decode("utf-8", errors="replace")
    return text if size <= _READ_BYTES else "[...]\n" + text.partition("\n")[2]
