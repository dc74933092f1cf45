"""Entry points that other distributions offer."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class EntryPointError(Exception):
    """An installed distribution offers something unusable; the message names the distribution."""


def find_entry_points(group: str, taken: Collection[str] = ()) -> dict[str, "EntryPoint"]:
    """Return the entry points of a group by name, without importing them. `taken` are names that ship.

    Raises:
        EntryPointError: A name is taken by what ships or by another distribution.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  importing it takes longer than all launchers together

    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=group):
        if point.name in taken:
            msg = f"{describe(point)}: this name is taken by what ships with autotune; rename the entry point"
            raise EntryPointError(msg)
        if point.name in points:
            msg = f"{describe(point)}: {describe(points[point.name])} has the same name; uninstall one of them"
            raise EntryPointError(msg)
        points[point.name] = point
    return points


def load_entry_point(point: "EntryPoint") -> Any:  # noqa: ANN401  whatever a distribution offers: its caller checks
    """Import what an entry point names.

    Raises:
        EntryPointError: It cannot be imported; the message says why.
    """
    try:
        return point.load()
    except Exception as error:  # foreign code: show the user whatever it raises
        reason = " ".join(str(error).split())
        msg = (
            f"{describe(point)} cannot be loaded: {type(error).__name__}: {reason}; "
            "repair or uninstall the distribution"
        )
        raise EntryPointError(msg) from error


def describe(point: "EntryPoint") -> str:
    """Return an entry point and its distribution in words."""
    distribution = f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"
    return f"entry point {point.name!r} ({point.value}) in group {point.group!r} of {distribution}"
