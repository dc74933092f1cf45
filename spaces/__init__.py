"""Parameters, constraints, and the set of valid configurations, as a value.

Imports numpy and the standard library, and nothing else of this project.
"""

from spaces.parameters.constraint import Constraint
from spaces.parameters.errors import ExpressionError, SpaceError
from spaces.parameters.listed import Listed
from spaces.parameters.parameter import Choice, Configuration, Flag, Float, Integer, Parameter, Value
from spaces.space import Count, Space
from spaces.tables import constraints_from_tables, parameters_from_tables, space_from_tables

__all__ = [
    "Choice",
    "Configuration",
    "Constraint",
    "Count",
    "ExpressionError",
    "Flag",
    "Float",
    "Integer",
    "Listed",
    "Parameter",
    "Space",
    "SpaceError",
    "Value",
    "constraints_from_tables",
    "parameters_from_tables",
    "space_from_tables",
]
