"""The type of columns that hold records: JSON as Python writes it."""

import json
from typing import Any

from sqlalchemy import JSON, Dialect, Text, TypeDecorator
from sqlalchemy.types import TypeEngine


class Record(TypeDecorator[Any]):
    """JSON, stored as text in PostgreSQL, whose JSON type has no NaN or infinity. Programs may print both."""

    impl = JSON
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the type of the column in this database."""
        return dialect.type_descriptor(Text() if _is_text(dialect) else JSON())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:  # noqa: ANN401  whatever JSON holds
        """Return the value to store."""
        return json.dumps(value) if _is_text(dialect) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ANN401  whatever JSON holds
        """Return the stored value."""
        return json.loads(value) if _is_text(dialect) else value


def _is_text(dialect: Dialect) -> bool:
    return dialect.name == "postgresql"
