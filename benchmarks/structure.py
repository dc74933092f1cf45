"""The structure of the code in figures, of this checkout or of another: `python -m benchmarks.structure [FOLDER]`."""

import ast
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.structure import PACKAGES, ROOT, circles, modules, rooms


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
