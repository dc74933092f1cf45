"""The values of expressions in one configuration."""

from collections.abc import Mapping

import numpy as np

from spaces.expressions.evaluate import value_of
from spaces.expressions.node import Node
from spaces.parameters.parameter import Configuration, Value, index_of
from spaces.valid_set.compiled import Compiled
from spaces.valid_set.domain import NO_VALUE, Domain


def values_in(space: Compiled, nodes: Mapping[str, Node], configuration: Configuration) -> dict[str, Value]:
    """Return the values of expressions by name, leaving out those without a value."""
    columns = {domain.position: np.array([_index(domain, configuration)]) for domain in space.domains}
    values = {name: value_of(node, columns, space.scope) for name, node in nodes.items()}
    return {name: value for name, value in values.items() if value is not None}


def _index(domain: Domain, configuration: Configuration) -> int:
    value = configuration.get(domain.parameter.name)
    place = None if value is None else index_of(domain.parameter, value)
    return NO_VALUE if place is None else place
