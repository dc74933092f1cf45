"""A space of measured configurations alone: what could have been chosen where a table is all that is known."""

from collections.abc import Mapping, Sequence

from objectives.replay.domains import parameter_of, value_of
from spaces import Configuration, Listed, Space, Value

_REASON = "only what was measured can be compared"


def tabled(configurations: Sequence[Configuration], default: Configuration | None = None) -> Space:
    """Return the space that holds exactly these configurations; the default is the first unless another is given.

    A number that others lack, or whose values are no grid, may become a word.
    """
    names = list(dict.fromkeys(name for one in configurations for name in one))
    first = configurations[0] if default is None else default
    parameters = [
        parameter_of(name, name, [one.get(name) for one in configurations], first.get(name)).parameter for name in names
    ]
    rows = [tuple(value_of(one, found.get(one.name)) for one in parameters) for found in configurations]
    return Space(parameters, [Listed.of("measured", names, rows, _REASON)])


def in_terms_of(space: Space, configuration: Configuration) -> Mapping[str, Value]:
    """Return a measured configuration as `tabled` has it."""
    found = {one.name: value_of(one, configuration.get(one.name)) for one in space.parameters}
    return {name: value for name, value in found.items() if value is not None}
