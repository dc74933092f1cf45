"""List the programs and code that a study file names, for a user who wants to review it before anything runs."""

import re
from collections.abc import Iterator, Mapping

from launchers.secret import ENVIRONMENT, mask_tables

_COMMANDS = frozenset({"argv", "prepare", "command", "made_by", "python", "program", "server", "warm_up", "reset"})
_SOFTWARE = frozenset({"modules", "spack", "spack_environment", "container", "runtime", "programs", "libraries"})
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def named_programs(table: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the keys of a study file that name programs or code, each with its value as text, secrets masked."""
    if isinstance(table, list | tuple):
        for index, value in enumerate(table):
            yield from named_programs(value, f"{path}.{index}")
    if not isinstance(table, Mapping):
        return
    for key, value in table.items():
        inner = f"{path}.{_key(key)}".lstrip(".")
        is_code = inner == "sampler.name" and ":" in str(value)
        is_site = inner == "launcher.site"
        is_environment = key == ENVIRONMENT and isinstance(value, Mapping)
        is_command = key in _COMMANDS | _SOFTWARE and not (key == "server" and isinstance(value, Mapping))
        if value and (is_command or is_code or is_site or is_environment):
            yield inner, _as_text(mask_tables({key: value})[key])
        elif not inner.startswith("space."):
            yield from named_programs(value, inner)


def _key(key: str) -> str:
    """Return a key as in TOML: quoted, since it may be any text, even control sequences for a terminal."""
    return key if _BARE.fullmatch(key) else repr(key)


def _as_text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{_key(name)}={_as_text(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return " ".join(_as_text(inner) for inner in value)
    return repr(value) if isinstance(value, str) else str(value)
