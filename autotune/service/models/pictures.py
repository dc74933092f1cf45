"""Pictures and job scripts as the service answers them, as JSON."""

from pydantic import BaseModel

from autotune.service.models.values import Values


class PictureBrief(BaseModel):
    """A picture that a study has."""

    name: str
    title: str
    description: str


class ScriptForm(BaseModel):
    """A form that the winner's job script can have."""

    name: str
    title: str


class Picture(PictureBrief):
    """A picture: its panels with their axes and marks, and the same as a table."""

    table: Values
    figure: Values
