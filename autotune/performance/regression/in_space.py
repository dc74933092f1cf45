"""Translate configurations of another space into a space."""

from collections import defaultdict
from collections.abc import Sequence

from spaces import Configuration, Space


def in_space(space: Space, configurations: Sequence[Configuration]) -> list[Configuration]:
    """Return the configurations of one source as configurations of `space`.

    A parameter that the space lacks is left out if it never varied; a parameter that was never set gets its default.
    """
    values: dict[str, set[object]] = defaultdict(set)
    counts: dict[str, int] = defaultdict(int)
    for configuration in configurations:
        for name, value in configuration.items():
            values[name].add(value)
            counts[name] += 1
    own = {parameter.name for parameter in space.parameters}
    never_change = {name for name, seen in values.items() if len(seen) == 1 and counts[name] == len(configurations)}
    idle = never_change - own
    missing = {name: value for name, value in space.unchecked_default().items() if name not in values}
    if not idle and not missing:
        return list(configurations)
    return [
        {**missing, **{name: value for name, value in configuration.items() if name not in idle}}
        for configuration in configurations
    ]
