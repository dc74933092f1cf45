"""A space that holds the configurations of a table of measurements, and no other."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autotune.records.measurement import Measured
from objectives.replay.domains import parameter_of, usable_names, value_of
from spaces import Configuration, Listed, Space, Value

_REASON = "only what was measured can be compared"


def tabled(configurations: Sequence[Configuration], default: Configuration | None = None) -> Space:
    """Return the space that holds exactly these configurations; the default is the first unless another is given.

    A number that some configurations lack, or whose values form no grid, may become a word.
    """
    names = list(dict.fromkeys(name for configuration in configurations for name in configuration))
    first = configurations[0] if default is None else default
    parameters = [
        parameter_of(
            name, name, [configuration.get(name) for configuration in configurations], first.get(name)
        ).parameter
        for name in names
    ]
    rows = [
        tuple(value_of(parameter, configuration.get(parameter.name)) for parameter in parameters)
        for configuration in configurations
    ]
    return Space(parameters, [Listed.of("measured", names, rows, _REASON)])


def with_usable_names(measured: Sequence[Measured]) -> list[Measured]:
    """Return measurements whose parameters have names that a space can have: an import may call one `block-size`."""
    names = dict.fromkeys(name for row in measured for name in (*row.configuration, *row.idle))
    called = usable_names(list(names))
    return [
        replace(
            row,
            configuration={called[name]: value for name, value in row.configuration.items()},
            idle=tuple(called[name] for name in row.idle),
        )
        for row in measured
    ]


def in_terms_of(space: Space, configuration: Configuration) -> Mapping[str, Value]:
    """Return a measured configuration as `tabled` has it."""
    values = {parameter.name: value_of(parameter, configuration.get(parameter.name)) for parameter in space.parameters}
    return {name: value for name, value in values.items() if value is not None}
