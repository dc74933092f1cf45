"""Stored: frozen dataclasses that storage holds as JSON."""

from collections.abc import Mapping
from dataclasses import Field, asdict
from functools import cache
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, TypeAdapter, ValidationError


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
            ValueError: The data does not fit this class.
        """
        try:
            read: Self = _adapter(cls).validate_python(stored)  # type: ignore[arg-type]  # a class is hashable
        except ValidationError as error:
            problems = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            msg = f"no stored {cls.__name__}: {'; '.join(problems)}"
            raise ValueError(msg) from error
        return read


@cache
def _adapter(stored: type[Stored]) -> TypeAdapter[Any]:
    return TypeAdapter(stored)
