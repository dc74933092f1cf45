"""The base class of all tables of a study file."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of a study file: frozen, without unknown keys, and strict about types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
