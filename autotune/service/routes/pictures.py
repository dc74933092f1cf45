"""Routes of a study's pictures, report and job script."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from pydantic import BaseModel

from autotune.batch.script_forms import script_forms, script_labels
from autotune.batch.winner_script import script_of, site_of
from autotune.report import report_of
from autotune.report.page import to_html
from autotune.service.callers import is_own
from autotune.service.json_values import json_value
from autotune.service.models.values import Values
from autotune.service.problems import answers
from autotune.service.routes.studies import StudyName
from autotune.service.studies import AnswerKey, Studies
from autotune.service.workers import Answer, answer_long, as_json, work_long
from autotune.studyfile.one_of import OneOf

PictureName = Annotated[str, Path(pattern=r"^[a-z]+$", max_length=40, examples=["progress"])]


class ScriptForm(BaseModel):
    """A form of the winner's job script."""

    name: str
    title: str


class Picture(BaseModel):
    """A picture: its panels with their axes and marks, and the same as a table."""

    name: str
    title: str
    description: str
    table: Values
    figure: Values


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/studies/{name}", tags=["pictures"])

    @router.get("/pictures/{picture}", response_model=Picture | None, responses=answers(404))
    async def show_picture(name: StudyName, picture: PictureName, request: Request) -> Response:
        """Show one of the `pictures` of a study; null while there is too little to draw."""

        make = partial(_draw, studies, picture)
        return await answer_long(request, partial(studies.key, name, "picture", picture), make)

    @router.get("/script-forms", responses=answers(404))
    def list_script_forms(name: StudyName) -> list[ScriptForm]:
        """List the forms of the winner's job script: the batch systems, and a plain shell."""
        studies.summary(name)
        return [ScriptForm(name=form, title=label) for form, label in script_labels()]

    @router.get("/script", response_class=PlainTextResponse, responses=answers(404))
    async def show_script(
        name: StudyName, request: Request, form: Annotated[str, OneOf(script_forms), Query()] = "slurm"
    ) -> Response:
        """Show the job script that runs the winner, with the site file of the service's user for that user only."""
        own = is_own(request)

        def make(key: AnswerKey) -> Answer:
            summary, store = studies.summary(name, key.version), studies.store(name)
            script = script_of(store, summary, form, site_of(summary.study, form) if own else None)
            return Answer(script.encode(), "text/plain; charset=utf-8")

        find_key = partial(studies.key, name, "script", form)
        if own:
            # Not kept: the owner's site file may change at any time.
            return (await work_long(request, lambda: make(find_key()))).response()
        return await answer_long(request, find_key, make)

    @router.get("/report", response_class=HTMLResponse, responses=answers(404))
    async def show_report(name: StudyName, request: Request) -> Response:
        """Show the report on a study, one document with its pictures."""

        def make(_: AnswerKey) -> Answer:
            return Answer(to_html(report_of(studies.store(name))).encode(), "text/html; charset=utf-8")

        return await answer_long(request, partial(studies.key, name, "report"), make)

    return router


def _draw(studies: Studies, picture: str, key: AnswerKey) -> Answer:
    chart = studies.chart(key.study, key.version, picture)
    if chart is None:
        return as_json(None)
    return as_json(
        Picture(
            name=chart.name,
            title=json_value(chart.title),
            description=json_value(chart.description),
            table=json_value({"columns": chart.table.columns, "rows": chart.table.rows}),
            figure=json_value(chart.to_dict()),
        )
    )
