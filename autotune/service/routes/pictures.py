"""Routes of what a study shows: its pictures, its report, and the job script of its winner."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import HTMLResponse, PlainTextResponse

from autotune.batch.script_forms import script_forms, script_labels
from autotune.batch.winner_script import script_of
from autotune.pictures.plotly import to_plotly
from autotune.report import report_of
from autotune.report.page import to_html
from autotune.service.models import Picture, PictureBrief, ScriptForm
from autotune.service.problems import ProblemError, answers
from autotune.service.redact import scrubbed, without_paths, without_paths_inside
from autotune.service.routes.studies import StudyName
from autotune.service.studies import Studies
from autotune.studyfile.one_of import OneOf

PictureName = Annotated[str, Path(pattern=r"^[a-z]+$", max_length=40, examples=["progress"])]


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/studies/{name}", tags=["pictures"])

    @router.get("/pictures", responses=answers(404))
    def list_pictures(name: StudyName) -> list[PictureBrief]:
        """List the pictures that a study has."""
        return [
            PictureBrief(name=chart.name, title=scrubbed(chart.title), description=scrubbed(chart.description))
            for chart in studies.charts(name).values()
        ]

    @router.get("/pictures/{picture}", responses=answers(404))
    def show_picture(
        name: StudyName,
        picture: PictureName,
        columns: Annotated[int | None, Query(ge=1, le=12, description="Panels side by side, at most.")] = None,
    ) -> Picture:
        """Show a picture as a figure of plotly.js, and as a table."""
        charts = studies.charts(name)
        if picture not in charts:
            raise ProblemError(404, f"study {name!r} has no picture {picture!r}; it has: {', '.join(charts)}")
        chart = charts[picture]
        return Picture(
            name=chart.name,
            title=scrubbed(chart.title),
            description=scrubbed(chart.description),
            table=scrubbed({"columns": chart.table.columns, "rows": chart.table.rows}),
            figure=scrubbed(to_plotly(chart, columns)),
        )

    @router.get("/script-forms", responses=answers(404))
    def list_script_forms(name: StudyName) -> list[ScriptForm]:
        """List the forms that the winner's job script can have: the batch systems, and a plain shell."""
        studies.summary(name)
        return [ScriptForm(name=form, title=label) for form, label in script_labels()]

    @router.get("/script", response_class=PlainTextResponse, responses=answers(404))
    def show_script(name: StudyName, form: Annotated[str, OneOf(script_forms), Query()] = "slurm") -> str:
        """Show the job script that runs the winner. Of paths the last part is left: of a program, its name."""
        summary = studies.summary(name)
        return without_paths(script_of(studies.store(name), summary, form), before="")

    @router.get("/report", response_class=HTMLResponse, responses=answers(404))
    def show_report(name: StudyName) -> str:
        """Show the report on a study, one document with its pictures; without paths of the host."""
        studies.summary(name)
        return to_html(without_paths_inside(report_of(studies.store(name))))

    return router
