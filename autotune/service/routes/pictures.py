"""Routes of what a study shows: its pictures, its report, and the job script of its winner."""

from typing import Annotated

from autotune.pictures.plotly import to_plotly
from fastapi import APIRouter, Path

from autotune.brackets import stored_brackets
from autotune.pictures import Chart, charts_of
from autotune.service.models import Picture, PictureBrief
from autotune.service.problems import ProblemError, answers
from autotune.service.routes.studies import StudyName
from autotune.service.scrub import scrubbed
from autotune.service.studies import Studies

PictureName = Annotated[str, Path(pattern=r"^[a-z]+$", max_length=40, examples=["progress"])]


def routes(studies: Studies) -> APIRouter:
    """Return the routes."""
    router = APIRouter(tags=["pictures"])

    def charts(name: str) -> list[Chart]:
        return charts_of(studies.summary(name), stored_brackets(studies.store(name)))

    @router.get("/studies/{name}/pictures", responses=answers(404))
    def list_pictures(name: StudyName) -> list[PictureBrief]:
        """List the pictures that a study has."""
        return [
            PictureBrief(name=one.name, title=scrubbed(one.title), description=scrubbed(one.description))
            for one in charts(name)
        ]

    @router.get("/studies/{name}/pictures/{picture}", responses=answers(404))
    def show_picture(name: StudyName, picture: PictureName) -> Picture:
        """Show a picture as a figure of plotly.js, and as a table."""
        found = {chart.name: chart for chart in charts(name)}
        if picture not in found:
            raise ProblemError(404, f"study {name!r} has no picture {picture!r}; it has: {', '.join(found)}")
        chart = found[picture]
        return Picture(
            name=chart.name,
            title=scrubbed(chart.title),
            description=scrubbed(chart.description),
            table=scrubbed({"columns": chart.table.columns, "rows": chart.table.rows}),
            figure=scrubbed(to_plotly(chart)),
        )

    return router
