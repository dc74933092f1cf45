"""The modules of a checkout, and which of its rooms import each other."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = ("autotune", "launchers", "objectives", "spaces")
ROOT = Path(__file__).parents[2]


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Return the modules by their dotted names."""
    paths = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of this project that a module imports, including imports in functions and for types."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        targets: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            targets = [name if name in known else node.module for name in whole]
        elif isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        yield from (target for target in targets if target in known)


def rooms(known: Mapping[str, Path], root: Path = ROOT) -> dict[str, set[str]]:
    """Return the rooms that each room imports. A room is a folder, or a module directly in autotune."""

    def room(name: str) -> str:
        folder = known[name].parent.relative_to(root).parts
        return name if folder == ("autotune",) else ".".join(folder)

    arrows: dict[str, set[str]] = {room(name): set() for name in known}
    for name, path in known.items():
        arrows[room(name)] |= {room(target) for target in imports(path, known)} - {room(name)}
    return arrows


def circles(arrows: Mapping[str, set[str]]) -> set[str]:
    """Return the rooms in import circles, and the rooms that import one of those."""
    left = dict(arrows)
    while free := {room for room, targets in left.items() if not targets & left.keys()}:
        left = {room: targets for room, targets in left.items() if room not in free}
    return set(left)
