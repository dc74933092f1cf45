"""A key whose choices are known only when a file is read, such as the names of batch systems."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticKnownError, core_schema


@dataclass(frozen=True)
class OneOf:
    """Annotate a text as one of `names()`: `Annotated[str, OneOf(names)]`. Other values are errors."""

    names: Callable[[], Sequence[str]]

    def _check(self, value: object) -> str:
        known = self.names()
        if isinstance(value, str) and value in known:
            return value
        *first, last = map(repr, known)
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(first)} or {last}" if first else last})

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        return core_schema.no_info_plain_validator_function(
            self._check, serialization=core_schema.to_string_ser_schema()
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "enum": list(self.names())}
