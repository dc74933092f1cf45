"""What several plans say by name: once what is the same for all, and what is not of each."""

from collections.abc import Callable, Mapping


def told_apart(
    by_name: Mapping[str, Mapping[str, str]], called: Callable[[str, str], str], missing: str | None = None
) -> dict[str, str]:
    """Return what the plans say, by key; `called` makes the key of one plan from the key and the plan's name.

    What only some say is left out of the others, or said of them as `missing`.
    """
    joint: dict[str, str] = {}
    for key in dict.fromkeys(key for own in by_name.values() for key in own):
        values = {name: own.get(key, missing) for name, own in by_name.items()}
        known = {name: value for name, value in values.items() if value is not None}
        if len(known) == len(by_name) and len(set(known.values())) == 1:
            joint[key] = next(iter(known.values()))
        else:
            joint |= {called(key, name): value for name, value in known.items()}
    return joint
