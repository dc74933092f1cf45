"""The type of columns that hold records: JSON as Python writes it."""

import json
from typing import Any

from sqlalchemy import JSON, Dialect, Text, TypeDecorator
from sqlalchemy.types import TypeEngine


class Record(TypeDecorator[Any]):
    """JSON; in PostgreSQL a text, since its own type knows neither NaN nor infinity, and a program may print either."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the database's own type."""
        return dialect.type_descriptor(Text() if _is_text(dialect) else JSON())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ANN401  whatever JSON holds
        """Return what is stored."""
        return json.dumps(value) if _is_text(dialect) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ANN401  whatever JSON holds
        """Return what was stored."""
        return json.loads(value) if _is_text(dialect) else value


def _is_text(dialect: Dialect) -> bool:
    return dialect.name == "postgresql"
