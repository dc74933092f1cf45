"""The structure of the code in figures, of this checkout or of another: `python -m benchmarks.structure [FOLDER]`."""

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGES = ("autotune", "launchers", "objectives", "spaces")
ROOT = Path(__file__).parents[1]


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Return the modules by their dotted names."""
    paths = (path for package in PACKAGES for path in sorted((root / package).rglob("*.py")))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """Return the modules of ours that a module imports, also within functions and for types only."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        targets: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            targets = [name if name in known else node.module for name in whole]
        elif isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        yield from (target for target in targets if target in known)


def rooms(known: Mapping[str, Path], root: Path = ROOT) -> dict[str, set[str]]:
    """Return for each room those that it imports: a room is a folder, or a module at the top of autotune."""

    def room(name: str) -> str:
        folder = known[name].parent.relative_to(root).parts
        return name if folder == ("autotune",) else ".".join(folder)

    arrows: dict[str, set[str]] = {room(name): set() for name in known}
    for name, path in known.items():
        arrows[room(name)] |= {room(target) for target in imports(path, known)} - {room(name)}
    return arrows


def circles(arrows: Mapping[str, set[str]]) -> set[str]:
    """Return the rooms that import each other in a circle, or one that does."""
    left = dict(arrows)
    while free := {room for room, targets in left.items() if not targets & left.keys()}:
        left = {room: targets for room, targets in left.items() if room not in free}
    return set(left)


def largest(known: Mapping[str, Path]) -> tuple[tuple[int, str], tuple[int, str]]:
    """Return the most fields of a class (annotated names in its body), and the most methods, each with its name."""
    classes = [
        (name, node)
        for name, path in known.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    fields = max((sum(isinstance(part, ast.AnnAssign) for part in node.body), node.name) for _, node in classes)
    methods = max((sum(isinstance(part, ast.FunctionDef) for part in node.body), node.name) for _, node in classes)
    return fields, methods


def lines(*folders: Path) -> int:
    """Return the lines of Python in folders."""
    return sum(len(path.read_text().splitlines()) for folder in folders for path in folder.rglob("*.py"))


def main() -> None:
    """Print the figures."""
    root = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    known = modules(root)
    arrows = rooms(known, root)
    folders = {path.parent for path in known.values()}
    (fields, widest), (methods, busiest) = largest(known)
    print(f"modules                       {len(known)}")
    print(f"at the top of autotune/       {len(list((root / 'autotune').glob('*.py')))}")
    print(f"folders                       {len(folders)}")
    print(f"most modules in a folder      {max(len(list(folder.glob('*.py'))) for folder in folders)}")
    print(f"arrows between rooms          {sum(map(len, arrows.values()))}")
    print(f"rooms in or above a circle    {len(circles(arrows))}")
    print(f"most fields of a class        {fields} ({widest})")
    print(f"most methods of a class       {methods} ({busiest})")
    print(f"lines of source               {lines(*(root / package for package in PACKAGES))}")
    print(f"lines of tests                {lines(root / 'tests')}")
    print(f"lines of benchmarks           {lines(root / 'benchmarks')}")


if __name__ == "__main__":
    main()
