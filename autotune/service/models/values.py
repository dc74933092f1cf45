"""Values that several requests and answers have, as JSON."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

# More than any valid request has: a hint has the most, with a configuration of 500 values.
_MOST_VALUES = 600

Values = dict[str, Any]
Word = Annotated[str, Field(max_length=200)]
Facts = Annotated[dict[Word, bool | int | Annotated[float, Field(allow_inf_nan=False)] | Word], Field(max_length=100)]


class Given(BaseModel):
    """A request of a client, without other fields or other kinds of values."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_size(cls, given: object) -> object:
        """Refuse many values before they are validated: that takes long, and nobody else is answered meanwhile."""
        count, left = 0, [given]
        while left and count <= _MOST_VALUES:
            value = left.pop()
            inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            count += len(inner)
            left.extend(inner)
        if count > _MOST_VALUES:
            said = "it has too many values: at most {most} are allowed"
            raise PydanticCustomError("too_many_values", said, {"most": _MOST_VALUES})
        return given


class MetricModel(BaseModel):
    """The metric that is optimised. A `quality` says how good a result is, not how fast it came."""

    name: str
    unit: str
    direction: Literal["minimize", "maximize"]
    quality: bool


class Health(BaseModel):
    """The service runs."""

    status: Literal["ok"]
    version: str
    read_only: bool = Field(description="Whether studies can only be looked at.")
