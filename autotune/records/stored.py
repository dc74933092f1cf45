"""Stored: frozen dataclasses that storage holds as JSON."""

from collections.abc import Mapping
from dataclasses import Field, asdict
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from autotune.errors import RecordError

_Read = TypeVar("_Read")


class Stored:
    """A frozen dataclass whose stored form has its fields in their order; unknown names are refused."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able stored form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Read the stored form.

        Raises:
            RecordError: The data does not fit this class.
        """
        return read_as(cls, stored)


def read_as(kind: type[_Read], stored: object) -> _Read:
    """Read data of a storage as an object of a dataclass.

    Raises:
        RecordError: The data does not fit the class.
    """
    try:
        read: _Read = _adapter(kind).validate_python(stored)  # type: ignore[arg-type]  # a class is hashable
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        msg = f"no stored {kind.__name__}: {'; '.join(problems)}"
        raise RecordError(msg) from error
    return read


@cache
def _adapter(stored: type[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(stored)
