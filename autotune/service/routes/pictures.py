"""Routes of a study's pictures, report and job script."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse
from pydantic import BaseModel

from autotune.batch.script_forms import script_forms, script_labels
from autotune.batch.winner_script import script_of, site_of
from autotune.report import report_of
from autotune.report.page import to_html
from autotune.service.callers import is_own
from autotune.service.json_values import json_value
from autotune.service.models.values import Values
from autotune.service.problems import ProblemError, answers
from autotune.service.routes.studies import StudyName
from autotune.service.studies import Studies
from autotune.studyfile.one_of import OneOf

PictureName = Annotated[str, Path(pattern=r"^[a-z]+$", max_length=40, examples=["progress"])]


class PictureBrief(BaseModel):
    """A picture of a study."""

    name: str
    title: str
    description: str


class ScriptForm(BaseModel):
    """A form of the winner's job script."""

    name: str
    title: str


class Picture(PictureBrief):
    """A picture: its panels with their axes and marks, and the same as a table."""

    table: Values
    figure: Values


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/studies/{name}", tags=["pictures"])

    @router.get("/pictures", responses=answers(404))
    def list_pictures(name: StudyName) -> list[PictureBrief]:
        """List the pictures of a study."""
        return [
            PictureBrief(name=chart.name, title=json_value(chart.title), description=json_value(chart.description))
            for chart in studies.charts(name).values()
        ]

    @router.get("/pictures/{picture}", responses=answers(404))
    def show_picture(name: StudyName, picture: PictureName) -> Picture:
        """Show a picture: its panels with their axes and marks, and the same as a table."""
        chart = studies.chart(name, picture)
        if chart is None:
            known = ", ".join(studies.charts(name))
            raise ProblemError(404, f"study {name!r} has no picture {picture!r}; it has: {known}")
        return Picture(
            name=chart.name,
            title=json_value(chart.title),
            description=json_value(chart.description),
            table=json_value({"columns": chart.table.columns, "rows": chart.table.rows}),
            figure=json_value(chart.to_dict()),
        )

    @router.get("/script-forms", responses=answers(404))
    def list_script_forms(name: StudyName) -> list[ScriptForm]:
        """List the forms of the winner's job script: the batch systems, and a plain shell."""
        studies.summary(name)
        return [ScriptForm(name=form, title=label) for form, label in script_labels()]

    @router.get("/script", response_class=PlainTextResponse, responses=answers(404))
    def show_script(
        name: StudyName, request: Request, form: Annotated[str, OneOf(script_forms), Query()] = "slurm"
    ) -> str:
        """Show the job script that runs the winner, with the site file of the service's user for that user only."""
        summary, store = studies.summary(name), studies.store(name)
        return script_of(store, summary, form, site_of(summary.study, form) if is_own(request) else None)

    @router.get("/report", response_class=HTMLResponse, responses=answers(404))
    def show_report(name: StudyName) -> str:
        """Show the report on a study, one document with its pictures."""
        studies.summary(name)
        return to_html(report_of(studies.store(name)))

    return router
