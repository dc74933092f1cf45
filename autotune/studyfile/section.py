"""Section: what every table of a study file has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of a study file: frozen, of exactly these keys, and of exactly these types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
